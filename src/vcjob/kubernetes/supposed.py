"""Queues for an operator that may not see any: those that Jobs name are taken to exist.

Whoever watches Queues learns of a supposed one before anybody learns of the Job that names it, so
that no Job is told that its queue is missing.
"""

import asyncio
from collections.abc import AsyncGenerator

from vcjob.api.kinds import QUEUE
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, WatchEvent

VERSION = "1"
_DEFAULT = "default"


class SupposedQueues:
    """The Queues that Jobs name, as objects of which nothing but the name is known."""

    def __init__(self) -> None:
        self._queues: dict[str, Object] = {}
        self._watchers: set[asyncio.Queue[str]] = set()

    def all(self) -> list[Object]:
        """Those supposed so far."""
        return list(self._queues.values())

    async def suppose(self, job: Object) -> None:
        """Take the queue of a Job to exist; returns once every watcher has taken it in."""
        spec = job.get("spec")
        named = spec.get("queue") if isinstance(spec, dict) else None
        name = named if named and isinstance(named, str) else _DEFAULT
        if name in self._queues:
            return
        metadata = {"name": name, "uid": f"supposed-{name}", "resourceVersion": VERSION}
        self._queues[name] = {
            "apiVersion": QUEUE.api_version,
            "kind": QUEUE.kind,
            "metadata": metadata,
        }
        for watcher in self._watchers:
            watcher.put_nowait(name)
        for watcher in list(self._watchers):
            await watcher.join()

    async def watch(self) -> AsyncGenerator[WatchEvent, None]:
        """All of them, those known already too, each as it is supposed."""
        coming: asyncio.Queue[str] = asyncio.Queue()
        for name in self._queues:
            coming.put_nowait(name)
        self._watchers.add(coming)
        try:
            while True:
                name = await coming.get()
                try:
                    yield WatchEvent(EventType.ADDED, self._queues[name])
                finally:
                    coming.task_done()
        finally:
            self._watchers.discard(coming)
            while not coming.empty():  # nobody is to wait for a watcher that went away
                coming.get_nowait()
                coming.task_done()
