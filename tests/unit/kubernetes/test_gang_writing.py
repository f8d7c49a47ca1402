"""What was decided about gangs, written: once, to whom it was decided about, and into the books."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from vcjob.api.kinds import POD, POD_GROUP
from vcjob.api.names import GROUP_NAME, OUT_OF_SYNC
from vcjob.api.types import Key, Object
from vcjob.controller.cluster import Conflict, Invalid, NotFound, Unavailable
from vcjob.core.scheduling.booked import BookedPod
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.core.scheduling.gating import GATE
from vcjob.core.scheduling.undone import Undone
from vcjob.kubernetes.gang_writing import GangWriter
from vcjob.local.store import Store

KEY: Key = ("default", "g")


class Failing(Store):
    """A store that fails to patch some objects, and counts its patches."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.failures: dict[str, Exception] = {}
        self.patched: list[tuple[str, str]] = []

    async def patch(self, kind: Any, namespace: str, name: str, patch: Object, **more: Any) -> Any:
        self.patched.append((name, more.get("subresource", "")))
        if error := self.failures.get(name):
            raise error
        return await super().patch(kind, namespace, name, patch, **more)


def play(
    scenario: Callable[[Failing, ClusterBooks, GangWriter], Coroutine[Any, Any, None]],
) -> None:
    async def run() -> None:
        store, books = Failing(), ClusterBooks(60.0)
        metadata = {"name": "g", "namespace": "default"}
        books.enter_group(await store.create(POD_GROUP, {"metadata": metadata, "spec": {}}))
        for name in ("a", "b", "c"):
            about = {"name": name, "namespace": "default", "annotations": {GROUP_NAME: "g"}}
            spec = {"containers": [], "schedulingGates": [{"name": GATE}]}
            books.enter_pod(await store.create(POD, {"metadata": about, "spec": spec}))
        await scenario(store, books, GangWriter(store, books, Undone()))

    asyncio.run(run())


def pods_of(books: ClusterBooks) -> list[BookedPod]:
    return list(books.ledger.gangs[KEY].pods.values())


@pytest.mark.parametrize("gone", [NotFound("gone"), Conflict("another"), Invalid("bound by now")])
def test_a_pod_that_is_gone_or_another_by_now_keeps_no_gate_of_others(gone: Exception) -> None:
    async def scenario(store: Failing, books: ClusterBooks, writer: GangWriter) -> None:
        store.failures["b"] = gone
        await writer.lift_gates(books.ledger.gangs[KEY], pods_of(books))
        assert {pod.key[1]: pod.is_held for pod in pods_of(books)} == {
            "a": False,
            "b": True,
            "c": False,
        }

    play(scenario)


def test_what_the_cluster_refuses_is_raised_after_all_were_tried_and_a_fault_before_it() -> None:
    async def scenario(store: Failing, books: ClusterBooks, writer: GangWriter) -> None:
        store.failures["a"] = Unavailable("away")
        with pytest.raises(Unavailable):
            await writer.lift_gates(books.ledger.gangs[KEY], pods_of(books))
        assert {name for name, _ in store.patched} == {"a", "b", "c"}
        store.failures["c"] = ValueError("a mistake of ours")
        with pytest.raises(ValueError, match="mistake"):
            await writer.lift_gates(books.ledger.gangs[KEY], pods_of(books))

    play(scenario)


def test_pods_are_deleted_with_the_mark_and_those_that_are_gone_count_as_deleted() -> None:
    async def scenario(store: Failing, books: ClusterBooks, writer: GangWriter) -> None:
        await store.patch(POD, "default", "a", {"spec": {"nodeName": "n"}})
        store.failures["b"] = NotFound("gone")
        deleted: list[str] = []
        await writer.delete(pods_of(books), deleted.append)
        assert set(deleted) == {pod.uid for pod in pods_of(books)}
        left = {pod["metadata"]["name"]: pod for pod in (await store.list(POD)).items}
        assert left["a"]["metadata"]["annotations"][OUT_OF_SYNC] == "true"
        assert "deletionTimestamp" in left["a"]["metadata"]
        assert "c" not in left

    play(scenario)


def test_whether_the_status_is_written_apart_is_found_out_once() -> None:
    async def scenario(store: Failing, books: ClusterBooks, writer: GangWriter) -> None:
        store.declare(POD_GROUP, status_subresource=True)
        uid = books.ledger.gangs[KEY].uid
        for phase in ("Inqueue", "Running"):
            await writer.write_status(KEY, uid, {"phase": phase})
            assert books.ledger.gangs[KEY].phase == phase
        assert store.patched == [("g", ""), ("g", "status"), ("g", "status")]

    play(scenario)


def test_a_namesake_of_the_group_is_left_alone() -> None:
    async def scenario(store: Failing, books: ClusterBooks, writer: GangWriter) -> None:
        with pytest.raises(Conflict):
            await writer.write_status(KEY, "another", {"phase": "Inqueue"})
        assert books.ledger.gangs[KEY].phase == ""

    play(scenario)
