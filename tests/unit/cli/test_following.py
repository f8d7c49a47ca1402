"""Following objects over watches that break."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from vcjob.api.kinds import POD, Kind
from vcjob.api.types import Object
from vcjob.cli import following
from vcjob.cli.following import changes
from vcjob.controller.cluster import EventType, Gone, ObjectList, Unavailable, WatchEvent

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def pod(name: str, version: int) -> Object:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}


class Scripted:
    """A cluster that plays lists and watches in the order given; an exception is raised."""

    def __init__(self, lists: list[Any], watches: list[list[Any]]) -> None:
        self.lists = lists
        self.watches = watches
        self.since: list[str] = []

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        found = self.lists.pop(0)
        if isinstance(found, Exception):
            raise found
        return ObjectList(found, "10")

    async def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        self.since.append(since)
        for event in self.watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield WatchEvent(*event)


def follow(cluster: Scripted, count: int, **options: Any) -> list[tuple[EventType, str]]:
    async def run() -> list[tuple[EventType, str]]:
        stream = changes(cluster, POD, **options)  # type: ignore[arg-type]
        return [
            (kind, obj["metadata"]["name"])
            for kind, obj in [await anext(stream) for _ in range(count)]
        ]

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_FIRST_DELAY_SECONDS", 0.0)


def test_a_broken_watch_goes_on_where_it_was() -> None:
    cluster = Scripted(
        [[pod("a", 9)]],
        [
            [(MODIFIED, pod("a", 11)), (EventType.BOOKMARK, pod("", 15)), Unavailable("x")],
            [(DELETED, pod("a", 16))],
        ],
    )
    assert follow(cluster, 3) == [(ADDED, "a"), (MODIFIED, "a"), (DELETED, "a")]
    assert cluster.since == ["10", "15"]


def test_after_a_fresh_list_what_went_meanwhile_is_told() -> None:
    cluster = Scripted([[pod("a", 9), pod("b", 9)], [pod("b", 20)]], [[Gone("old")], []])
    assert follow(cluster, 4) == [(ADDED, "a"), (ADDED, "b"), (DELETED, "a"), (ADDED, "b")]


def test_what_was_known_and_is_gone_is_told_first() -> None:
    cluster = Scripted([[]], [])
    assert follow(cluster, 1, known={"a": pod("a", 1)}) == [(DELETED, "a")]


def test_a_cluster_that_stays_away_is_given_up() -> None:
    cluster = Scripted([Unavailable("away")] * 10, [])
    with pytest.raises(Unavailable, match="away"):
        follow(cluster, 1)
    assert len(cluster.lists) == 4
