"""Following a kind on a cluster that is at times not to be reached."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from vcjob.api.kinds import NODE, Kind
from vcjob.controller.clock import SystemClock
from vcjob.controller.cluster import ClusterError, Forbidden, ObjectList, Unavailable, WatchEvent
from vcjob.kubernetes.gang_following import follow
from vcjob.local.store import Store


class Clock(SystemClock):
    """A clock that nobody has to wait for. ``pauses`` are what was slept."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> float:
        return 0.0

    async def sleep_until(self, when: float) -> None:
        self.pauses.append(when)
        await asyncio.sleep(0)


class Away(Store):
    """A cluster that answers lists with these errors first."""

    def __init__(self, errors: list[ClusterError]) -> None:
        super().__init__(lambda: 0.0)
        self.errors = errors

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        if self.errors:
            raise self.errors.pop(0)
        return await super().list(kind, namespace, labels)


def test_what_stays_wrong_is_logged_once_and_tried_ever_more_seldom(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()

    async def scenario() -> None:
        listed, away = (
            asyncio.Event(),
            Away([Unavailable(word) for word in ("no", "no", "no", "never")]),
        )

        def take(obj: Any, *, gone: bool) -> None:
            raise AssertionError("there is none")

        following = asyncio.create_task(
            follow(away, NODE, take, clock, listed=listed.set, changed=lambda: None)
        )
        await listed.wait()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    with caplog.at_level("WARNING"):
        asyncio.run(asyncio.wait_for(scenario(), 20))
    assert caplog.messages == ["following nodes broke off: no", "following nodes broke off: never"]
    assert clock.pauses == sorted(clock.pauses)
    assert len(clock.pauses) == 4


class Closed(Away):
    """One that also refuses the first watch."""

    refuses = True

    async def watch(self, *arguments: Any) -> AsyncIterator[WatchEvent]:
        if self.refuses:
            self.refuses = False
            raise Forbidden("closed")
        async for event in super().watch(*arguments):
            yield event


def test_a_namespace_that_is_closed_counts_as_empty_until_it_is_open_again() -> None:
    news: list[str | tuple[str, bool]] = []

    async def scenario() -> None:
        closed = Closed([Forbidden("closed")])
        await closed.create(NODE, {"metadata": {"name": "one"}})

        def take(obj: Any, *, gone: bool) -> None:
            news.append((obj["metadata"]["name"], gone))

        done = asyncio.Event()

        def listed() -> None:
            news.append("listed")
            if news.count("listed") == 4:
                done.set()

        following = follow(
            closed, NODE, take, Clock(), listed=listed, changed=lambda: None, may_be_closed=True
        )
        task = asyncio.create_task(following)
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(scenario(), 20))
    there, gone = ("one", False), ("one", True)
    assert news == ["listed", there, "listed", gone, "listed", there, "listed"]
