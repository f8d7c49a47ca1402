"""Following all objects of a kind on a cluster that is at times not to be reached."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Protocol

from vcjob.api.kinds import Kind
from vcjob.api.names import GROUP_NAME
from vcjob.api.types import Key, Object, key_of
from vcjob.controller.backing_off import pause_after
from vcjob.controller.clock import Clock
from vcjob.controller.cluster import Cluster, ClusterError, EventType, Forbidden, Gone

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_A_TURN = 200

_log = logging.getLogger(__name__)


class Take(Protocol):
    """Takes an object as it is now; of one that is gone, only what identifies it is sure."""

    def __call__(self, obj: Object, /, *, gone: bool) -> None:
        """Take it."""


async def follow(
    cluster: Cluster,
    kind: Kind,
    take: Take,
    clock: Clock,
    *,
    listed: Callable[[], None],
    changed: Callable[[], None],
    may_be_closed: bool = False,
) -> None:
    """Hand over the objects of a kind and whatever becomes of them, until cancelled.

    ``listed`` is called whenever all there are have been handed over, ``changed`` after each change
    and list. What cannot be had is tried again, ever more seldom. What ``may_be_closed`` to us (a
    namespace without our rights, among others) counts as empty while it is.
    """
    known: dict[Key, Object] = {}
    since = ""
    failures, told = 0, ""
    jitter = random.Random()
    while True:
        try:
            if not since:
                found = await cluster.list(kind)
                _replace(known, found.items, take)
                since = found.resource_version
                del found
                listed()
                changed()
            turn = 0
            async for event in cluster.watch(kind, since):
                failures, told = 0, ""
                since = event.object["metadata"]["resourceVersion"]
                if event.type is EventType.BOOKMARK:
                    continue
                gone = event.type is EventType.DELETED
                if gone:
                    known.pop(key_of(event.object), None)
                else:
                    known[key_of(event.object)] = _identity(event.object)
                take(event.object, gone=gone)
                changed()
                turn = (turn + 1) % _A_TURN
                if not turn:
                    await asyncio.sleep(0)
            await clock.sleep_until(clock.now() + _FIRST_DELAY_SECONDS)  # watches do not end
        except Gone:
            since = ""  # too far behind: list again
        except ClusterError as error:
            if str(error) != told:  # else it is as it was
                _log.warning("following %s broke off: %s", kind.plural, error)
            if may_be_closed and isinstance(error, Forbidden):
                _replace(known, [], take)
                since = ""
                listed()
                changed()
            failures, told = failures + 1, str(error)
            pause = pause_after(
                failures, jitter, first=_FIRST_DELAY_SECONDS, longest=_LONGEST_DELAY_SECONDS
            )
            await clock.sleep_until(clock.now() + pause)


def _replace(known: dict[Key, Object], items: list[Object], take: Take) -> None:
    """Take in a whole list: what is not in it is gone, namesakes of what is in it too."""
    present = {key_of(obj): _identity(obj) for obj in items}
    for key, obj in known.items():
        if key not in present or present[key]["metadata"]["uid"] != obj["metadata"]["uid"]:
            take(obj, gone=True)
    known.clear()
    known.update(present)
    for obj in items:
        take(obj, gone=False)


def _identity(obj: Object) -> Object:
    """What tells an object from others once it is gone; the rest need not be kept."""
    metadata = obj["metadata"]
    kept = {
        field: metadata[field]
        for field in ("namespace", "name", "uid", "resourceVersion")
        if field in metadata
    }
    group = (metadata.get("annotations") or {}).get(GROUP_NAME)
    if group:
        kept["annotations"] = {GROUP_NAME: group}
    return {"metadata": kept}
