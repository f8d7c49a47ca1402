"""The watches of several namespaces as one."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from vcjob.controller.cluster import Unavailable, WatchEvent
from vcjob.kubernetes.retrying import PATIENT, Patience

_READ_AHEAD = 100
"""Events that wait to be taken; then the watches wait."""

_log = logging.getLogger(__name__)


async def merged(
    watch: Callable[[str, str], AsyncGenerator[WatchEvent, None]],
    versions: Mapping[str, str],
    *,
    patience: Patience = PATIENT,
    jitter: random.Random,
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncGenerator[WatchEvent, None]:
    """The events of ``watch(namespace, version)`` of each namespace, each from its own version.

    A watch that breaks is gone on with from where it was, as often as it takes; the others notice
    nothing. One that cannot be gone on with ends all with its error.
    """
    events: asyncio.Queue[WatchEvent | Exception] = asyncio.Queue(_READ_AHEAD)

    async def follow(namespace: str, since: str) -> None:
        failed = 0
        while True:
            try:
                async with contextlib.aclosing(watch(namespace, since)) as watched:
                    async for event in watched:
                        since = event.object["metadata"]["resourceVersion"]
                        failed = 0
                        await events.put(event)
            except Unavailable as error:
                failed += 1
                _log.warning("a watch of namespace %s broke off: %s", namespace, error)
                await sleep(patience.pause(error, failed, jitter))
            except Exception as error:  # raised where the events are taken
                await events.put(error)
                return

    tasks = [asyncio.ensure_future(follow(*place)) for place in versions.items()]
    try:
        while True:
            event = await events.get()
            if isinstance(event, Exception):
                raise event
            yield event
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
