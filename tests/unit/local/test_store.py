"""The store keeps the habits of an API server that the controller and the node agent rely on."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, JOB, POD, POD_GROUP, QUEUE
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    Conflict,
    EventType,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
)
from vcjob.local.store import Store

NOW = 1_700_000_000.0


def store(**options: Any) -> Store:
    numbers = itertools.count(1)
    return Store(lambda: NOW, new_uid=lambda: f"{next(numbers):032x}", **options)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 20))


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def owned(name: str, *owners: Object, **more: Any) -> Object:
    references = [
        {"kind": "Job", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
         "blockOwnerDeletion": True}
        for owner in owners
    ]  # fmt: skip
    return {"metadata": {"name": name, "ownerReferences": references}, **more}


async def names(there: Store, kind: Any = POD) -> list[str]:
    return sorted(one["metadata"]["name"] for one in (await there.list(kind)).items)


async def bound_pod(there: Store, name: str, *owners: Object) -> Object:
    await there.create(POD, owned(name, *owners, spec={}))
    return await there.patch(POD, "default", name, {"spec": {"nodeName": "here"}})


def test_what_the_server_writes_is_written() -> None:
    async def story() -> None:
        there = store()
        job = await there.create(JOB, named("lc", spec={"queue": "a"}, status={"running": 7}))
        metadata = job["metadata"]
        assert metadata["namespace"] == "default"
        assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
        assert metadata["generation"] == 1
        assert int(metadata["resourceVersion"]) > 0
        assert metadata["uid"]
        assert "status" not in job
        assert (await there.create(POD, named("p", spec={})))["status"] == {"phase": "Pending"}

    run(story)


def test_a_name_is_generated_wanted_and_taken_once() -> None:
    async def story() -> None:
        there = store()
        made = await there.create(POD, {"metadata": {"generateName": "lc-"}})
        assert made["metadata"]["name"].startswith("lc-")
        assert len(made["metadata"]["name"]) > len("lc-")
        with pytest.raises(Invalid):
            await there.create(POD, {"metadata": {}})
        with pytest.raises(AlreadyExists):
            await there.create(POD, named(made["metadata"]["name"]))
        await there.create(POD, {"metadata": {**named("p")["metadata"], "namespace": "other"}})
        with pytest.raises(NotFound):
            await there.get(POD, "default", "p")

    run(story)


def test_a_patch_merges_shares_what_stays_and_raises_the_generation_with_the_spec() -> None:
    async def story() -> None:
        there = store()
        spec = {"queue": "a", "tasks": [{"name": "w"}], "plugins": {"svc": [], "env": []}}
        old = await there.create(JOB, named("lc", spec=spec))
        new = await there.patch(JOB, "default", "lc", {"spec": {"plugins": {"env": None}}})
        assert new["spec"] == {**spec, "plugins": {"svc": []}}
        assert new["spec"]["tasks"] is old["spec"]["tasks"]
        assert old["spec"]["plugins"] == {"svc": [], "env": []}
        assert new["metadata"]["generation"] == 2
        labelled = await there.patch(JOB, "default", "lc", {"metadata": {"labels": {"a": "b"}}})
        assert labelled["metadata"]["generation"] == 2
        assert int(labelled["metadata"]["resourceVersion"]) > int(
            new["metadata"]["resourceVersion"]
        )

    run(story)


def test_a_patch_that_changes_nothing_is_no_change() -> None:
    async def story() -> None:
        there = store()
        old = await there.create(JOB, named("lc", spec={"queue": "a"}))
        assert await there.patch(JOB, "default", "lc", {"spec": {"queue": "a"}}) is old
        assert await there.patch(JOB, "default", "lc", {"spec": {"none": None}}) is old

    run(story)


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "creationTimestamp"])
def test_what_identifies_an_object_cannot_be_patched(field: str) -> None:
    async def story() -> None:
        there = store()
        old = await there.create(CONFIG_MAP, named("c"))
        new = await there.patch(CONFIG_MAP, "default", "c", {"metadata": {field: "x"}})
        assert new["metadata"][field] == old["metadata"][field]

    run(story)


@pytest.mark.parametrize(
    ("kind", "subresource", "spec", "status"),
    [
        (JOB, "", "new", None),
        (JOB, "status", "old", "new"),
        (POD_GROUP, "", "new", "new"),  # its status has no subresource
    ],
)
def test_spec_and_status_are_written_apart(
    kind: Any, subresource: str, spec: str, status: str | None
) -> None:
    async def story() -> None:
        there = store()
        await there.create(kind, named("x", spec={"s": "old"}))
        patch = {"spec": {"s": "new"}, "status": {"s": "new"}}
        new = await there.patch(kind, "default", "x", patch, subresource=subresource)
        assert new["spec"]["s"] == spec
        assert (new.get("status") or {}).get("s") == status

    run(story)


def test_preconditions_hold_or_nothing_is_written() -> None:
    async def story() -> None:
        there = store()
        first = await there.create(JOB, named("lc", spec={"queue": "a"}))
        version, uid = first["metadata"]["resourceVersion"], first["metadata"]["uid"]
        patch = {"spec": {"queue": "b"}}
        await there.patch(JOB, "default", "lc", patch, uid=uid, resource_version=version)
        with pytest.raises(Conflict):
            await there.patch(JOB, "default", "lc", {"spec": {"queue": "c"}},
                              resource_version=version)  # fmt: skip
        for request in (there.patch(JOB, "default", "lc", {}, uid="other"),
                        there.delete(JOB, "default", "lc", uid="other")):  # fmt: skip
            with pytest.raises(Conflict):
                await request
        assert (await there.get(JOB, "default", "lc"))["spec"] == {"queue": "b"}

    run(story)


def test_what_is_not_there_is_not_found() -> None:
    async def story() -> None:
        there = store()
        for request in (there.get(POD, "default", "p"), there.delete(POD, "default", "p"),
                        there.patch(POD, "default", "p", {})):  # fmt: skip
            with pytest.raises(NotFound):
                await request

    run(story)


def test_a_pod_on_a_node_leaves_when_the_node_says_so() -> None:
    async def story() -> None:
        there = store()
        await bound_pod(there, "p")
        await there.delete(POD, "default", "p")
        leaving = await there.get(POD, "default", "p")
        assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
        assert leaving["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:50Z"
        await there.patch(POD, "default", "p", {"metadata": {"labels": {"still": "there"}}})
        await there.delete(POD, "default", "p", grace_period_seconds=60)
        assert await there.get(POD, "default", "p")
        await there.delete(POD, "default", "p", grace_period_seconds=5)
        shorter = await there.get(POD, "default", "p")
        assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
        await there.delete(POD, "default", "p", grace_period_seconds=0)
        assert await names(there) == []

    run(story)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_needs_no_node_to_leave(phase: str) -> None:
    async def story() -> None:
        there = store()
        await bound_pod(there, "p")
        status = {"status": {"phase": phase}}
        await there.patch(POD, "default", "p", status, subresource="status")
        await there.delete(POD, "default", "p")
        assert await names(there) == []

    run(story)


def test_a_pod_on_no_node_vanishes_at_once() -> None:
    async def story() -> None:
        there = store()
        await there.create(POD, named("p", spec={}))
        await there.delete(POD, "default", "p")
        assert await names(there) == []

    run(story)


def test_what_an_object_owns_goes_with_it_unless_somebody_else_owns_it_too() -> None:
    async def story() -> None:
        there = store()
        first = await there.create(JOB, named("first"))
        second = await there.create(JOB, named("second"))
        await there.create(CONFIG_MAP, owned("its-own", first))
        await there.create(CONFIG_MAP, owned("shared", first, second))
        await bound_pod(there, "on-a-node", first)
        await there.create(POD, owned("on-none", first))
        await there.delete(JOB, "default", "first")
        assert await names(there, CONFIG_MAP) == ["shared"]
        assert await names(there) == ["on-a-node"]
        leaving = await there.get(POD, "default", "on-a-node")
        assert "deletionTimestamp" in leaving["metadata"]
        await there.delete(JOB, "default", "second")
        assert await names(there, CONFIG_MAP) == []

    run(story)


def test_what_is_made_for_an_owner_that_is_gone_does_not_stay() -> None:
    async def story() -> None:
        there = store()
        job = await there.create(JOB, named("lc"))
        await there.delete(JOB, "default", "lc")
        await there.create(POD, owned("p", job))
        assert await names(there) == []

    run(story)


def test_deleted_in_the_foreground_an_owner_goes_last() -> None:
    async def story() -> None:
        there = store()
        job = await there.create(JOB, named("lc"))
        await bound_pod(there, "p", job)
        await there.create(CONFIG_MAP, owned("c", job))
        await there.delete(JOB, "default", "lc", propagation="Foreground")
        assert "deletionTimestamp" in (await there.get(JOB, "default", "lc"))["metadata"]
        assert await names(there, CONFIG_MAP) == []
        await there.delete(POD, "default", "p", grace_period_seconds=0)
        assert await names(there, JOB) == []

    run(story)


def test_orphans_stay() -> None:
    async def story() -> None:
        there = store()
        job = await there.create(JOB, named("lc"))
        await there.create(CONFIG_MAP, owned("c", job))
        await there.delete(JOB, "default", "lc", propagation="Orphan")
        orphan = await there.get(CONFIG_MAP, "default", "c")
        assert orphan["metadata"]["ownerReferences"] == []

    run(story)


def test_a_finalizer_keeps_an_object_until_it_is_taken_off() -> None:
    async def story() -> None:
        there = store()
        await there.create(CONFIG_MAP, {"metadata": {"name": "c", "finalizers": ["mine"]}})
        await there.delete(CONFIG_MAP, "default", "c")
        assert await names(there, CONFIG_MAP) == ["c"]
        await there.patch(CONFIG_MAP, "default", "c", {"metadata": {"finalizers": None}})
        assert await names(there, CONFIG_MAP) == []

    run(story)


async def take(watch: Any, count: int) -> list[tuple[str, str]]:
    events = [await anext(watch) for _ in range(count)]
    return [(event.type.value, event.object["metadata"]["name"]) for event in events]


def test_a_watch_goes_on_from_a_list_without_gap_or_repetition() -> None:
    async def story() -> None:
        there = store()
        await there.create(POD, named("before", spec={}))
        listed = await there.list(POD)
        await there.create(POD, named("p", spec={}))
        watch = there.watch(POD, listed.resource_version)
        await there.patch(POD, "default", "p", {"metadata": {"labels": {"a": "b"}}})
        await there.create(CONFIG_MAP, named("another-kind"))
        assert await take(watch, 2) == [("ADDED", "p"), ("MODIFIED", "p")]
        waiting = asyncio.create_task(take(watch, 1))
        await asyncio.sleep(0)
        await there.delete(POD, "default", "p")
        assert await waiting == [("DELETED", "p")]

    run(story)


def test_a_watch_by_labels_sees_objects_come_and_go_with_their_labels() -> None:
    async def story() -> None:
        there = store()
        watch = there.watch(POD, "0", labels={"a": "b"})
        await there.create(POD, named("p", spec={}))
        for labels in ({"a": "b"}, {"c": "d"}, {"a": None}, {"e": "f"}):
            await there.patch(POD, "default", "p", {"metadata": {"labels": labels}})
        assert await take(watch, 3) == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]
        assert (await there.list(POD, labels={"c": "d"})).items
        assert not (await there.list(POD, labels={"a": "b"})).items

    run(story)


def test_a_watch_of_one_namespace_sees_no_other() -> None:
    async def story() -> None:
        there = store()
        watch = there.watch(POD, "0", namespace="here")
        for namespace in ("there", "here"):
            await there.create(POD, {"metadata": {"name": namespace, "namespace": namespace}})
        assert await take(watch, 1) == [("ADDED", "here")]
        assert len((await there.list(POD, namespace="here")).items) == 1

    run(story)


def test_a_watch_that_begins_too_early_or_lags_too_far_behind_must_list_again() -> None:
    async def story() -> None:
        there = store(history=4)
        slow = there.watch(POD, "0")
        first = asyncio.create_task(anext(slow))
        await asyncio.sleep(0)
        for number in range(20):
            await there.create(POD, named(f"p{number}", spec={}))
        with pytest.raises(Gone):
            await anext(there.watch(POD, "1"))
        with pytest.raises(Gone):
            await first
        version = (await there.list(POD)).resource_version
        fresh = there.watch(POD, version)
        await there.delete(POD, "default", "p0")
        event = await anext(fresh)
        assert event.type is EventType.DELETED
        assert int(event.object["metadata"]["resourceVersion"]) > int(version)

    run(story)


def test_admission_completes_and_refuses_but_not_the_status() -> None:
    def admit(kind: Any, new: Object, old: Object | None) -> Object:
        if (new.get("spec") or {}).get("bad"):
            raise Forbidden("bad")
        return {**new, "spec": {**(new.get("spec") or {}), "seen": old is not None}}

    async def story() -> None:
        there = store(admission=admit)
        assert (await there.create(JOB, named("lc")))["spec"] == {"seen": False}
        with pytest.raises(Forbidden):
            await there.patch(JOB, "default", "lc", {"spec": {"bad": True}})
        new = await there.patch(JOB, "default", "lc", {"spec": {"queue": "a"}})
        assert new["spec"] == {"seen": True, "queue": "a"}
        status = {"status": {"running": 1}}
        assert (await there.patch(JOB, "default", "lc", status, subresource="status"))["status"]

    run(story)


def test_queues_belong_to_no_namespace() -> None:
    async def story() -> None:
        there = store()
        queue = await there.create(QUEUE, named("default"))
        assert "namespace" not in queue["metadata"]
        assert await there.get(QUEUE, "", "default") is queue

    run(story)
