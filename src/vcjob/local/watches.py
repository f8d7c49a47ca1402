"""Who follows which objects, and what happened lately: the store's side of ``Cluster.watch``.

A follower has no queue of its own, only a place in the history that all share: a slow one costs
nothing, and once the history has forgotten what comes next for it, it is told to list again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, Gone, WatchEvent

Labels = Mapping[str, str]
Wanted = Callable[[Object], bool]
"""Whether an object is among those that somebody asked for."""


class Change(NamedTuple):
    """One change of an object; ``before`` is what it replaced, ``size`` in bytes as stored."""

    version: int
    type: EventType
    object: Object
    before: Object | None
    size: int = 0


def matches(obj: Object, namespace: str | None, labels: Labels | None) -> bool:
    """Whether an object is of a namespace (None: any) and carries all ``labels``."""
    metadata = obj["metadata"]
    if namespace is not None and metadata.get("namespace", "") != namespace:
        return False
    if not labels:
        return True
    present = metadata.get("labels") or {}
    return all(present.get(key) == value for key, value in labels.items())


def everything(obj: Object) -> bool:
    """Any object is wanted."""
    return True


def selected_by(namespace: str | None, labels: Labels | None) -> Wanted:
    """What is of a namespace (None: any) and carries all ``labels``."""
    if namespace is None and not labels:
        return everything
    return lambda obj: matches(obj, namespace, labels)


class History:
    """The latest changes of one kind.

    Args:
        length: how many changes are kept at most.
        most_bytes: how large the objects of these changes are together at most, as stored. They
            share what did not change, so they take less memory than that.
        forgotten: the version up to which nothing is known.
    """

    def __init__(self, length: int, most_bytes: int, forgotten: int = 0) -> None:
        self._length = length
        self._most_bytes = most_bytes
        self._changes: deque[Change] = deque()
        self._bytes = 0
        self._forgotten = forgotten
        self._recorded = 0
        self._waiting: list[asyncio.Future[None]] = []

    def record(self, change: Change) -> None:
        """Keep a change and tell all who wait for one."""
        self._changes.append(change)
        self._recorded += 1
        self._bytes += change.size
        while len(self._changes) > self._length or self._bytes > self._most_bytes:
            oldest = self._changes.popleft()
            self._bytes -= oldest.size
            self._forgotten = oldest.version
        if self._waiting:
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting.clear()

    def follow(self, since: int, wanted: Wanted, latest: Callable[[], int]) -> "Follow":
        """The changes after version ``since``; raises Gone if some of them are forgotten.

        ``latest`` is the version of the latest change of any kind.
        """
        if since < self._forgotten:
            raise Gone(f"resource version {since} is too old: list again")
        behind = 0
        for change in reversed(self._changes):
            if change.version <= since:
                break
            behind += 1
        return Follow(self, self._recorded - behind, wanted, latest)

    def after(self, place: int) -> Change | None:
        """The change at a place (None: it has not happened yet); raises Gone."""
        behind = self._recorded - place
        if not behind:
            return None
        if behind > len(self._changes):
            raise Gone("this watch fell too far behind: list again")
        return self._changes[-behind]

    async def wait(self) -> None:
        """Return after the next change."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            raise


class Follow(AsyncIterator[WatchEvent]):
    """One watch: iterate to get its events; raises Gone. There is nothing to close."""

    def __init__(
        self, history: History, place: int, wanted: Wanted, latest: Callable[[], int]
    ) -> None:
        self._history = history
        self._place = place
        self._wanted = wanted
        self._latest = latest
        self._version = 0

    @property
    def version(self) -> int:
        """The version up to which all changes were handed over: what a bookmark says.

        0 as long as the first change has not been looked at.
        """
        if self._history.after(self._place) is None:
            self._version = self._latest()
        return self._version

    async def __anext__(self) -> WatchEvent:
        while True:
            change = self._history.after(self._place)
            if change is None:
                await self._history.wait()
                continue
            self._place += 1
            self._version = change.version
            if self._wanted is everything:
                return WatchEvent(change.type, change.object)
            event = _seen(change, self._wanted)
            if event is not None:
                return event


def _seen(change: Change, wanted: Wanted) -> WatchEvent | None:
    """A change as one who selects sees it: objects come into the selection and leave it."""
    now = wanted(change.object)
    if change.type is not EventType.MODIFIED or change.before is None:
        return WatchEvent(change.type, change.object) if now else None
    before = wanted(change.before)
    if now:
        return WatchEvent(EventType.MODIFIED if before else EventType.ADDED, change.object)
    return WatchEvent(EventType.DELETED, change.object) if before else None
