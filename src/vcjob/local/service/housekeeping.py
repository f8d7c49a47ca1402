"""What an engine that runs for months must not gather without bound.

Kubernetes keeps Events for an hour; on one machine they are what is read the next morning, so they
stay for a day.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from vcjob.api.kinds import EVENT
from vcjob.api.types import Object
from vcjob.controller.cluster import NotFound, StorageFailed
from vcjob.core.times import seconds_of
from vcjob.local.store import Store

EVENTS_KEPT_SECONDS = 24 * 3600.0
_EVERY_SECONDS = 600.0
_A_TURN = 100


async def keep_house(store: Store, clock: Callable[[], float] = time.time) -> None:
    """Remove what is old, now and then, until cancelled."""
    while True:
        with contextlib.suppress(StorageFailed):  # told to whoever writes; tried again
            await remove_old_events(store, clock())
        await asyncio.sleep(_EVERY_SECONDS)


async def remove_old_events(store: Store, now: float) -> None:
    """Remove Events that nobody told for a day; raises StorageFailed."""
    before = now - EVENTS_KEPT_SECONDS
    old = (await store.select(EVENT, None, lambda event: _told(event) < before)).items
    for number, event in enumerate(old, start=1):
        metadata = event["metadata"]
        with contextlib.suppress(NotFound):
            await store.delete(EVENT, metadata["namespace"], metadata["name"])
        if number % _A_TURN == 0:
            await asyncio.sleep(0)


def _told(event: Object) -> float:
    """When it was told last."""
    series = event.get("series") or {}
    told = (
        event.get("lastTimestamp"),
        event.get("eventTime"),
        series.get("lastObservedTime"),
        event["metadata"]["creationTimestamp"],
    )
    return max(seconds_of(text) or 0.0 for text in told if isinstance(text, str))
