"""The watches of several namespaces as one."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from played_time import play

from vcjob.controller.cluster import EventType, Forbidden, Gone, Unavailable, WatchEvent
from vcjob.kubernetes.merging import merged
from vcjob.kubernetes.retrying import Patience

LOST = Unavailable("the connection broke")


class NoJitter(random.Random):
    def random(self) -> float:
        return 0.0


class Watches:
    """Watches that tell what they were given, event after event, or break."""

    def __init__(self, **told: list[int | Exception]) -> None:
        self.told = told
        self.since: list[tuple[str, str]] = []
        self.open = 0

    async def watch(self, namespace: str, since: str) -> AsyncIterator[WatchEvent]:
        self.since.append((namespace, since))
        self.open += 1
        try:
            while self.told[namespace]:
                told = self.told[namespace].pop(0)
                if isinstance(told, Exception):
                    raise told
                metadata = {"namespace": namespace, "resourceVersion": str(told)}
                yield WatchEvent(EventType.ADDED, {"metadata": metadata})
            await asyncio.get_running_loop().create_future()
        finally:
            self.open -= 1

    def merged(self, **versions: str) -> AsyncIterator[WatchEvent]:
        return merged(
            self.watch, versions, patience=Patience(), jitter=NoJitter(),
            sleep=asyncio.sleep,
        )  # fmt: skip


async def take(events: AsyncIterator[WatchEvent], count: int) -> dict[str, list[int]]:
    taken: dict[str, list[int]] = {}
    for _ in range(count):
        metadata = (await anext(events)).object["metadata"]
        taken.setdefault(metadata["namespace"], []).append(int(metadata["resourceVersion"]))
    return taken


def test_each_namespace_goes_on_from_its_own_version() -> None:
    async def story() -> None:
        watches = Watches(fast=[7, 90, LOST, 95], slow=[8, LOST, LOST, 9, LOST, 10])
        events = watches.merged(fast="5", slow="6")
        assert await take(events, 6) == {"fast": [7, 90, 95], "slow": [8, 9, 10]}
        assert [since for place, since in watches.since if place == "fast"] == ["5", "90"]
        assert [since for place, since in watches.since if place == "slow"] == ["6", "8", "8", "9"]
        await events.aclose()  # type: ignore[attr-defined]
        assert not watches.open

    play(story())


@pytest.mark.parametrize("error", [Gone("too old"), Forbidden("no"), KeyError("a fault")])
def test_what_cannot_be_gone_on_with_ends_all(error: Exception) -> None:
    async def story() -> None:
        watches = Watches(a=[1, error], b=[])
        events = watches.merged(a="0", b="0")
        assert await take(events, 1) == {"a": [1]}
        with pytest.raises(type(error)):
            await anext(events)
        assert not watches.open

    play(story())


def test_a_watch_that_breaks_again_and_again_is_asked_for_less_and_less_often() -> None:
    async def story() -> None:
        watches = Watches(a=[*[LOST] * 30, 1, LOST, 2], b=[3])
        events = watches.merged(a="0", b="0")
        assert await take(events, 1) == {"b": [3]}
        assert await take(events, 1) == {"a": [1]}
        now = asyncio.get_running_loop().time
        assert now() == pytest.approx(0.2 + 0.4 + 0.8 + 1.6 + 3.2 + 25 * 5.0)
        since = now()
        assert await take(events, 1) == {"a": [2]}
        assert now() - since == pytest.approx(0.2), "an event came in between"

    play(story())


def test_watches_wait_for_whoever_takes_their_events() -> None:
    async def story() -> None:
        watches = Watches(a=list(range(1, 1000)), b=[])
        events = watches.merged(a="0", b="0")
        await take(events, 1)
        await asyncio.sleep(1)
        assert len(watches.told["a"]) > 800
        assert await take(events, 998) == {"a": list(range(2, 1000))}

    play(story())
