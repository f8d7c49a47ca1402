"""What reviews need to know of the cluster: its Queues and PriorityClasses, kept up by watches.

What cannot be read refuses nothing: reviews go on without it, and say so.
"""

import asyncio
import logging
import random
from collections.abc import Mapping

from vcjob.admission.reviewing import Known
from vcjob.api.kinds import PRIORITY_CLASS, QUEUE, Kind
from vcjob.api.names import HIERARCHY, HIERARCHY_WEIGHTS
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    Cluster,
    ClusterError,
    EventType,
    Forbidden,
    Gone,
    NotFound,
    ObjectList,
)
from vcjob.controller.readiness import Readiness
from vcjob.core.check import Lookup

KINDS = (QUEUE, PRIORITY_CLASS)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
"""Seconds between attempts to list and watch."""
_LONGEST_LIST = 3.0
"""Seconds that a review waits for a list of its own."""

_READ = ("parent", "capability", "deserved", "guarantee")
_PLACING = (HIERARCHY, HIERARCHY_WEIGHTS)

_log = logging.getLogger(__name__)


class Lookups:
    """Queues and PriorityClasses of a cluster, as far as they are known."""

    def __init__(self, cluster: Cluster, readiness: Readiness) -> None:
        self._cluster = cluster
        self._readiness = readiness
        self._objects: dict[Kind, Mapping[str, Object]] = {}
        self._missing: dict[Kind, str] = dict.fromkeys(KINDS, "the webhook has just started")
        self._listing: asyncio.Task[Known] | None = None

    def known(self) -> Known:
        """What is known now; it does not change when more becomes known."""
        return _known(self._objects, self._missing)

    async def known_about(self, queue: str) -> Known:
        """What is known now, a Queue that is not there or not open looked for once more.

        Who makes a Queue and at once a Job for it must not be refused for what a watch tells a
        moment later.
        """
        queues = self._objects.get(QUEUE)
        if not queue or queues is None or _is_open(queues.get(queue)):
            return self.known()
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._listed())
        try:
            return await asyncio.wait_for(asyncio.shield(self._listing), _LONGEST_LIST)
        except (ClusterError, TimeoutError) as error:
            _log.info("Queues could not be looked at once more: %s", error or "no answer in time")
            return self.known()

    async def _listed(self) -> Known:
        listed = await self._cluster.list(QUEUE)
        return _known({**self._objects, QUEUE: _by_name(QUEUE, listed)}, self._missing)

    async def follow(self) -> None:
        """Keep up with the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind in KINDS:
                group.create_task(self._follow(kind))

    async def _follow(self, kind: Kind) -> None:
        pause, told = _FIRST_PAUSE, ""
        while True:
            try:
                listed = await self._cluster.list(kind)
                self._objects[kind] = _by_name(kind, listed)
                self._missing.pop(kind, None)
                self._readiness.meet(kind.plural)
                pause, told = _FIRST_PAUSE, ""
                await self._watch(kind, listed.resource_version)
            except Gone:
                pass  # lists afresh
            except (Forbidden, NotFound) as error:
                # Nothing that waiting would change: reviews do without it.
                self._objects.pop(kind, None)
                self._missing[kind] = f"{kind.plural} cannot be listed"
                self._readiness.meet(
                    kind.plural, f"what needs them is not checked: {error}", warn=True
                )
                pause = _LONGEST_PAUSE
            except ClusterError as error:
                if str(error) != told:  # else it is as it was
                    _log.warning("following %s broke off: %s", kind.plural, error)
                told = str(error)
                if kind in self._missing:
                    self._readiness.fail(kind.plural, str(error))
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _watch(self, kind: Kind, since: str) -> None:
        """Take in changes until the watch breaks; it is begun again with a list, which is short."""
        async for event in self._cluster.watch(kind, since):
            if event.type is EventType.BOOKMARK:
                continue
            name = event.object["metadata"]["name"]
            # Reviews in other threads read what was there before: it is replaced, not changed.
            objects = dict(self._objects[kind])
            if event.type is EventType.DELETED:
                objects.pop(name, None)
            else:
                objects[name] = _trimmed(kind, event.object)
            self._objects[kind] = objects


def _known(objects: Mapping[Kind, Mapping[str, Object]], missing: Mapping[Kind, str]) -> Known:
    classes = objects.get(PRIORITY_CLASS)
    lookup = Lookup(objects.get(QUEUE), None if classes is None else frozenset(classes))
    return Known(lookup, dict(missing))


def _by_name(kind: Kind, listed: ObjectList) -> dict[str, Object]:
    return {obj["metadata"]["name"]: _trimmed(kind, obj) for obj in listed.items}


def _trimmed(kind: Kind, obj: Object) -> Object:
    """What the rules read of an object."""
    if kind != QUEUE:
        return {}
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    annotations = obj["metadata"].get("annotations") or {}
    placed = {name: annotations[name] for name in _PLACING if name in annotations}
    return {
        "metadata": {"annotations": placed},
        "spec": {"parent": "", **{name: spec[name] for name in _READ if spec.get(name)}},
        "status": {
            "state": status.get("state") or "",
            "allocated": {"pods": (status.get("allocated") or {}).get("pods") or 0},
        },
    }


def _is_open(queue: Object | None) -> bool:
    return queue is not None and queue["status"]["state"] in ("", "Open")
