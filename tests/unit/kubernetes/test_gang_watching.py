"""The books of gangs are kept from what there is, and complete only when all of it was seen."""

import asyncio
from typing import Any

import pytest
from simulation import ManualClock

from vcjob.api.kinds import JOB, NODE, POD_GROUP, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Unavailable
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.kubernetes.gang_watching import GangWatching
from vcjob.local.store import Store


async def settle(store: Store) -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def test_nothing_is_complete_before_the_last_kind_is_listed() -> None:
    class Closed(Store):
        is_closed = True

        async def list(self, kind: Kind, *arguments: Any) -> Any:
            if kind == NODE and self.is_closed:
                raise Unavailable("away")
            return await super().list(kind, *arguments)

    async def scenario() -> None:
        clock = ManualClock()
        store = Closed(clock.now)
        watching = GangWatching(store, [store], store, ClusterBooks(60.0), clock, lambda uid: None)
        task = asyncio.create_task(watching.run())
        await settle(store)
        assert not watching.is_complete
        store.is_closed = False
        clock.move_to(clock.now() + 10)
        await settle(store)
        assert watching.is_complete
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())


def test_a_job_is_read_only_when_its_spec_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        store, books = Store(clock.now), ClusterBooks(60.0)
        read: list[int] = []
        enter = books.enter_job
        monkeypatch.setattr(
            books, "enter_job", lambda job, **gone: (read.append(1), enter(job, **gone))
        )
        watching = GangWatching(store, [store], store, books, clock, lambda uid: None)
        task = asyncio.create_task(watching.run())
        job: Object = {"metadata": {"name": "lc", "namespace": "default"},
                       "spec": {"tasks": [{"name": "w", "replicas": 1}]}}  # fmt: skip
        await store.create(JOB, job)
        await settle(store)
        for change in ({"status": {"running": 1}}, {"metadata": {"labels": {"a": "b"}}}):
            await store.patch(JOB, "default", "lc", change)
            await settle(store)
        assert len(read) == 1
        await store.patch(JOB, "default", "lc", {"spec": {"tasks": [{"name": "w", "replicas": 2}]}})
        await settle(store)
        assert len(read) == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())


def test_changes_are_told_and_pod_groups_that_go_are_forgotten() -> None:
    async def scenario() -> None:
        clock, forgotten = ManualClock(), []
        store, books = Store(clock.now), ClusterBooks(60.0)
        watching = GangWatching(store, [store], store, books, clock, forgotten.append)
        task = asyncio.create_task(watching.run())
        group = await store.create(POD_GROUP, {"metadata": {"name": "g", "namespace": "default"}})
        await store.create(QUEUE, {"metadata": {"name": "q"}, "spec": {}})
        await settle(store)
        watching.changed.clear()
        await store.delete(POD_GROUP, "default", "g")
        await settle(store)
        assert watching.changed.is_set()
        assert forgotten == [group["metadata"]["uid"]]
        assert not books.ledger.gangs
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
