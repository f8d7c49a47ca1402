"""Following all objects of a kind, for whoever keeps something in step with them."""

import asyncio
from collections.abc import Awaitable, Callable

from vcjob.api.kinds import Kind
from vcjob.api.types import Key, Object, key_of
from vcjob.controller.cluster import Cluster, EventType, Gone

Take = Callable[[Object, bool], Awaitable[None] | None]
"""Called with each object as it is now, and whether it is gone."""

_A_TURN = 200


async def follow(
    cluster: Cluster, kind: Kind, take: Take, listed: Callable[[], None] = lambda: None
) -> None:
    """Hand over the objects of a kind and whatever becomes of them, until cancelled.

    ``listed`` is called when all objects that exist have been handed over.
    """
    known: dict[Key, Object] = {}
    while True:
        found = await cluster.list(kind)
        present = {key_of(obj): obj for obj in found.items}
        for key, obj in known.items():
            if key not in present:
                await _hand_over(take, obj, True)
        known = present
        for obj in found.items:
            await _hand_over(take, obj, False)
        listed()
        try:
            turn = 0
            async for event in cluster.watch(kind, found.resource_version):
                if event.type is EventType.BOOKMARK:
                    continue
                gone = event.type is EventType.DELETED
                known[key_of(event.object)] = event.object
                if gone:
                    del known[key_of(event.object)]
                await _hand_over(take, event.object, gone)
                turn = (turn + 1) % _A_TURN
                if not turn:
                    await asyncio.sleep(0)
        except Gone:
            continue  # too far behind: list again


async def _hand_over(take: Take, obj: Object, gone: bool) -> None:
    waiting = take(obj, gone)
    if waiting is not None:
        await waiting
