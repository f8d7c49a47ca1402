"""Queues and PriorityClasses as reviews know them, and what happens where they cannot be read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from vcjob.admission import lookups as module
from vcjob.admission.lookups import Lookups
from vcjob.api.kinds import PRIORITY_CLASS, QUEUE, Kind
from vcjob.controller.cluster import Cluster, ClusterError, Forbidden, Gone, NotFound, Unavailable
from vcjob.controller.readiness import Readiness
from vcjob.local.store import Store


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.002)


class Access:
    """A store; ``troubles`` are raised instead of an answer, ``lists`` counts lists of a kind."""

    def __init__(self) -> None:
        self.store = Store(lambda: 0.0)
        self.troubles: dict[tuple[str, Kind], ClusterError] = {}
        self.lists: list[Kind] = []
        self.held = asyncio.Event()
        self.held.set()

    async def queue(self, name: str, state: str = "Open") -> None:
        """Make a Queue in a state."""
        await self.store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
        status = {"status": {"state": state}}
        await self.store.patch(QUEUE, "", name, status, subresource="status")

    async def list(self, kind: Kind, *arguments: Any) -> Any:
        self.lists.append(kind)
        if error := self.troubles.get(("list", kind)):
            raise error
        await self.held.wait()
        return await self.store.list(kind, *arguments)

    async def watch(self, kind: Kind, since: str) -> AsyncIterator[Any]:
        if error := self.troubles.get(("watch", kind)):
            raise error
        async for event in self.store.watch(kind, since):
            yield event


async def until(right: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not right():  # noqa: ASYNC110 - what is waited for is not ours to signal
            await asyncio.sleep(0.001)


def state_of(lookups: Lookups, name: str) -> str:
    found = (lookups.known().lookup.queues or {}).get(name)
    return found["status"]["state"] if found else "missing"


@contextlib.asynccontextmanager
async def following(access: Access) -> AsyncIterator[tuple[Lookups, Readiness]]:
    cluster: Cluster = access  # type: ignore[assignment]
    readiness = Readiness(expected=("queues", "priorityclasses"))
    lookups = Lookups(cluster, readiness)
    task = asyncio.create_task(lookups.follow())
    try:
        yield lookups, readiness
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def run(scenario: Callable[[Access], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario(Access())

    asyncio.run(whole())


def test_what_there_is_and_becomes_is_known() -> None:
    async def scenario(access: Access) -> None:
        await access.queue("default")
        async with following(access) as (lookups, readiness):
            await until(lambda: readiness.ready)
            before = lookups.known()
            assert before.missing == {}
            await access.queue("late", "Closed")
            await access.store.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 1})
            await until(lambda: lookups.known().lookup.priority_classes == frozenset({"high"}))
            await until(lambda: state_of(lookups, "late") == "Closed")
            await access.store.delete(QUEUE, "", "default")
            await until(lambda: "default" not in (lookups.known().lookup.queues or {}))
            assert set(before.lookup.queues or {}) == {"default"}, "an answer under way keeps it"

    run(scenario)


def test_before_anything_is_known_reviews_go_on_and_the_probe_says_so() -> None:
    async def scenario(access: Access) -> None:
        access.held.clear()
        async with following(access) as (lookups, readiness):
            await until(lambda: len(access.lists) == 2)
            known = await lookups.known_about("any")
            assert (known.lookup.queues, known.lookup.priority_classes) == (None, None)
            assert set(known.missing) == {QUEUE, PRIORITY_CLASS}
            assert not readiness.ready
            assert "queues: not known yet" in readiness.text()

    run(scenario)


@pytest.mark.parametrize("error", [Forbidden("may not list queues"), NotFound("no such kind")])
def test_what_may_not_be_read_is_left_out_until_it_may(error: ClusterError) -> None:
    async def scenario(access: Access) -> None:
        access.troubles["list", QUEUE] = error
        async with following(access) as (lookups, readiness):
            await until(lambda: readiness.ready)
            known = await lookups.known_about("any")
            assert known.lookup.queues is None
            assert known.missing == {QUEUE: "queues cannot be listed"}
            assert str(error) in readiness.text()
            access.troubles.clear()
            await until(lambda: not lookups.known().missing)

    run(scenario)


@pytest.mark.parametrize("error", [Gone("too old"), Unavailable("broken off")])
def test_a_watch_that_breaks_forgets_nothing(error: ClusterError) -> None:
    async def scenario(access: Access) -> None:
        await access.queue("default")
        async with following(access) as (lookups, readiness):
            access.troubles["watch", QUEUE] = error
            await until(lambda: access.lists.count(QUEUE) > 2)
            assert set(lookups.known().lookup.queues or {}) == {"default"}
            assert readiness.ready

    run(scenario)


def test_a_server_that_is_away_at_the_start_is_told() -> None:
    async def scenario(access: Access) -> None:
        access.troubles["list", QUEUE] = Unavailable("the server is away")
        async with following(access) as (_, readiness):
            await until(lambda: "queues: the server is away" in readiness.text())
            assert not readiness.ready
            access.troubles.clear()
            await until(lambda: readiness.ready)

    run(scenario)


@pytest.mark.parametrize("before", ["", "Closed"])
def test_a_queue_that_a_watch_has_not_told_of_is_looked_for_once(before: str) -> None:
    """Whoever makes or opens a Queue and at once a Job for it is not refused."""

    async def scenario(access: Access) -> None:
        if before:
            await access.queue("new", before)
        access.troubles["watch", QUEUE] = Unavailable("slow")
        async with following(access) as (lookups, readiness):
            await until(lambda: readiness.ready)
            access.troubles["list", QUEUE] = Unavailable("slow")  # so that following sees nothing
            await until(lambda: access.lists.count(QUEUE) > 2)
            if before:
                await access.store.delete(QUEUE, "", "new")
            await access.queue("new")
            stale = (await lookups.known_about("new")).lookup.queues or {}
            assert ("new" in stale) == bool(before)
            access.troubles.pop(("list", QUEUE))
            access.held.clear()
            asked = [asyncio.create_task(lookups.known_about("new")) for _ in range(20)]
            await asyncio.sleep(0)
            access.held.set()
            for known in await asyncio.gather(*asked):
                assert (known.lookup.queues or {})["new"]["status"]["state"] == "Open"

    run(scenario)


def test_an_open_queue_costs_no_request() -> None:
    async def scenario(access: Access) -> None:
        await access.queue("default")
        async with following(access) as (lookups, readiness):
            await until(lambda: readiness.ready)
            count = len(access.lists)
            await asyncio.gather(*(lookups.known_about("default") for _ in range(20)))
            assert len(access.lists) == count

    run(scenario)
