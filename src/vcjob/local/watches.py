"""Who follows which objects, and what happened lately: the store's side of ``Cluster.watch``."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, Gone, WatchEvent

Labels = Mapping[str, str]


class Change(NamedTuple):
    """One change of an object; ``before`` is set only where its labels were different."""

    version: int
    type: EventType
    object: Object
    before: Object | None


def matches(obj: Object, namespace: str | None, labels: Labels | None) -> bool:
    """Whether an object is of a namespace (None: any) and carries all ``labels``."""
    metadata = obj["metadata"]
    if namespace is not None and metadata.get("namespace", "") != namespace:
        return False
    if not labels:
        return True
    present = metadata.get("labels") or {}
    return all(present.get(key) == value for key, value in labels.items())


class History:
    """The latest changes of one kind, and those who follow them.

    ``length`` is how many changes are kept for watches that begin later, and how many a slow
    follower may be behind before it has to list again.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._changes: deque[Change] = deque()
        self._forgotten = 0
        self._followers: set[_Follower] = set()

    def record(self, change: Change) -> None:
        """Keep a change and hand it to all who follow."""
        self._changes.append(change)
        if len(self._changes) > self._length:
            self._forgotten = self._changes.popleft().version
        for follower in self._followers:
            follower.offer(change)

    def follow(
        self, since: int, namespace: str | None, labels: Labels | None
    ) -> AsyncIterator[WatchEvent]:
        """The changes after version ``since``; raises Gone if some of them are forgotten."""
        if since < self._forgotten:
            raise Gone(f"resource version {since} is too old: list again")
        follower = _Follower(self._length)
        for change in reversed(self._changes):
            if change.version <= since:
                break
            follower.behind.appendleft(change)
        self._followers.add(follower)
        return self._events(follower, namespace, labels)

    async def _events(
        self, follower: "_Follower", namespace: str | None, labels: Labels | None
    ) -> AsyncIterator[WatchEvent]:
        try:
            while True:
                await follower.wait()
                while follower.behind:
                    event = _seen(follower.behind.popleft(), namespace, labels)
                    if event:
                        yield event
        finally:
            self._followers.discard(follower)


class _Follower:
    """One watch: the changes that it has not taken yet."""

    def __init__(self, most_behind: int) -> None:
        self.behind: deque[Change] = deque()
        self._most_behind = most_behind
        self._lost = False
        self._woken = asyncio.Event()

    def offer(self, change: Change) -> None:
        if len(self.behind) >= self._most_behind:
            self.behind.clear()
            self._lost = True
        if not self._lost:
            self.behind.append(change)
        self._woken.set()

    async def wait(self) -> None:
        if not self.behind and not self._lost:
            await self._woken.wait()
        self._woken.clear()
        if self._lost:
            raise Gone("this watch fell too far behind: list again")


def _seen(change: Change, namespace: str | None, labels: Labels | None) -> WatchEvent | None:
    """A change as one who selects by labels sees it: objects come and go with their labels."""
    now = matches(change.object, namespace, labels)
    if change.type is not EventType.MODIFIED or change.before is None:
        return WatchEvent(change.type, change.object) if now else None
    before = matches(change.before, namespace, labels)
    if now:
        return WatchEvent(EventType.MODIFIED if before else EventType.ADDED, change.object)
    return WatchEvent(EventType.DELETED, change.object) if before else None
