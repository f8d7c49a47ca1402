"""Watches of any selection, and what they cost when they are slow."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, POD
from vcjob.api.types import Object
from vcjob.controller.cluster import Gone
from vcjob.local.objects import Write
from vcjob.local.store import Store


class Sizes:
    """A disk that takes everything, each object as so many bytes."""

    def __init__(self, size: int) -> None:
        self._size = size

    def write(self, version: int, writes: Sequence[Write]) -> list[int]:
        return [self._size for _ in writes]


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def test_objects_enter_and_leave_a_selection() -> None:
    async def story() -> None:
        there = Store(lambda: 0.0)
        running = there.follow(POD, "0", "default", lambda pod: pod["status"]["phase"] == "Running")
        await there.create(POD, {"metadata": {"name": "p", "namespace": "elsewhere"}})
        await there.create(POD, named("p"))
        for phase in ("Running", "Running", "Succeeded", "Failed"):
            status = {"status": {"phase": phase, "at": there.version}}
            for namespace in ("elsewhere", "default"):
                await there.patch(POD, namespace, "p", status, subresource="status")
        events = [await anext(running) for _ in range(3)]
        assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert {event.object["metadata"]["namespace"] for event in events} == {"default"}

    asyncio.run(story())


def test_a_watch_knows_up_to_which_version_it_has_told_all() -> None:
    async def story() -> None:
        there = Store(lambda: 0.0)
        await there.create(POD, named("p"))
        watch = there.follow(POD, "0", None, lambda pod: True)
        assert watch.version == 0
        await anext(watch)
        assert watch.version == 1
        await there.create(CONFIG_MAP, named("c"))
        assert watch.version == 2
        await there.create(POD, named("q"))
        assert watch.version == 2
        await anext(watch)
        assert watch.version == 3

    asyncio.run(story())


def test_history_is_bounded_in_bytes() -> None:
    async def story() -> None:
        there = Store(lambda: 0.0, history_bytes=10_000, disk=Sizes(1_000))
        slow = there.watch(POD, "0")
        for number in range(11):
            await there.create(POD, named(f"p{number}"))
        with pytest.raises(Gone):
            await anext(slow)
        with pytest.raises(Gone):
            there.watch(POD, "0")
        assert (await anext(there.watch(POD, "1"))).object["metadata"]["name"] == "p1"

    asyncio.run(story())


def test_a_cancelled_wait_leaves_the_watch_where_it_is() -> None:
    async def story() -> None:
        there = Store(lambda: 0.0)
        watch = there.watch(POD, "0")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(watch), 0.01)
        await there.create(POD, named("p"))
        assert (await anext(watch)).object["metadata"]["name"] == "p"

    asyncio.run(story())
