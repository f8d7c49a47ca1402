"""What the controller knows of the cluster, kept up by lists and watches whatever goes wrong.

A kind that cannot be listed keeps the controller from acting: "the pods cannot be listed" must not
be taken for "there are no pods". A watch that breaks is only late.
"""

import asyncio
import logging
import math
import random
from collections.abc import Collection, Mapping

from vcjob.api.kinds import (
    COMMAND,
    JOB,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    SUPPORTING,
    Kind,
)
from vcjob.api.names import MANAGED_BY, MANAGED_BY_VALUE
from vcjob.controller.backing_off import pause_after
from vcjob.controller.clock import Clock
from vcjob.controller.cluster import Cluster, ClusterError, EventType, Gone, Unavailable
from vcjob.controller.records import Records

# Jobs come before pods: a Job's state must not be newer than what is known of its pods.
_KINDS: tuple[Kind, ...] = (QUEUE, PRIORITY_CLASS, JOB, COMMAND, POD_GROUP,
                            PERSISTENT_VOLUME_CLAIM, POD, *SUPPORTING)  # fmt: skip
_OURS = {MANAGED_BY: MANAGED_BY_VALUE}

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 30.0
_WATCH_TRIES = 3
"""After so many broken watches of a kind without any news in between it is listed anew."""

_SURE_SECONDS = 10.0
"""A watch that was begun so long ago and did not break since is taken to work."""

_log = logging.getLogger(__name__)


class Caches:
    """Lists and watches of all kinds that decisions read, into ``records``.

    Args:
        cluster: where the objects live.
        records: gets every object and every change.
        clock: the time.
        jitter: a number from 0 to 1, drawn to spread repeated tries.
        unwatched: kinds that are left out.
    """

    def __init__(
        self,
        cluster: Cluster,
        records: Records,
        clock: Clock,
        jitter: random.Random,
        unwatched: Collection[Kind] = (),
    ) -> None:
        self._kinds = tuple(kind for kind in _KINDS if kind not in unwatched)
        self._cluster = cluster
        self._records = records
        self._clock = clock
        self._jitter = jitter
        self._listed = dict.fromkeys(self._kinds, False)
        self._failures = dict.fromkeys(self._kinds, 0)
        self._at_least = dict.fromkeys(self._kinds, 0.0)  # seconds that the server asked us to wait
        self._wrong: dict[Kind, tuple[str, float]] = {}  # until when a sentence is believed
        self._all_listed = asyncio.Event()

    @property
    def synced(self) -> bool:
        """Whether every kind is known as a whole."""
        return self._all_listed.is_set()

    @property
    def troubles(self) -> Mapping[Kind, str]:
        """Which kinds cannot be listed or watched at the moment, one sentence each."""
        now = self._clock.steady()
        return {kind: text for kind, (text, until) in self._wrong.items() if now <= until}

    async def until_synced(self) -> None:
        """Return when every kind is known as a whole."""
        await self._all_listed.wait()

    async def keep_up(self) -> None:
        """List everything, then follow it, until cancelled."""
        listed = await self._list_all()
        async with asyncio.TaskGroup() as group:
            for kind, since in listed.items():
                group.create_task(self._follow(kind, since))

    async def _list_all(self) -> dict[Kind, str]:
        """List all kinds, in their order and without a gap in time; returns from where to watch."""
        while True:
            for kind in self._kinds:
                self._set_listed(kind, False)
            listed = {kind: await self._try_list(kind) for kind in self._kinds}
            since = {kind: version for kind, version in listed.items() if version is not None}
            if len(since) == len(self._kinds):
                return since
            failed = [kind for kind in self._kinds if kind not in since]
            await self._clock.sleep(self._pause(failed[0]))
            for kind in failed:
                await self._list(kind)
            # What was listed first may have changed long ago: once more.

    async def _list(self, kind: Kind) -> str:
        """The version from which to watch, however long it takes."""
        while (version := await self._try_list(kind)) is None:
            await self._clock.sleep(self._pause(kind))
        return version

    async def _try_list(self, kind: Kind) -> str | None:
        try:
            listed = await self._cluster.list(kind, labels=labels_of(kind))
        except ClusterError as error:
            self._note(kind, f"cannot list {kind.plural}: {error}", error)
            self._set_listed(kind, False)
            return None
        self._records.replace(kind, listed.items)
        self._failures[kind] = 0
        self._wrong.pop(kind, None)
        self._set_listed(kind, True)
        return listed.resource_version

    async def _follow(self, kind: Kind, since: str) -> None:
        while True:
            try:
                async for event in self._cluster.watch(kind, since, labels=labels_of(kind)):
                    since = event.object["metadata"]["resourceVersion"]
                    self._failures[kind] = 0
                    if event.type is not EventType.BOOKMARK:
                        self._records.take(kind, event.type, event.object)
            except Gone:
                since = await self._list(kind)
                continue
            except ClusterError as error:
                self._note(kind, f"cannot watch {kind.plural}: {error}", error)
            else:
                self._failures[kind] += 1  # nobody promised that it would end
            seconds = self._pause(kind)
            if kind in self._wrong:
                until = self._clock.steady() + seconds + _SURE_SECONDS
                self._wrong[kind] = self._wrong[kind][0], until
            await self._clock.sleep(seconds)
            if self._failures[kind] >= _WATCH_TRIES:
                since = await self._list(kind)

    def _note(self, kind: Kind, sentence: str, error: ClusterError) -> None:
        self._failures[kind] += 1
        self._at_least[kind] = (isinstance(error, Unavailable) and error.retry_after) or 0.0
        before = self._wrong.get(kind, ("", 0.0))[0]
        _log.log(logging.DEBUG if sentence == before else logging.WARNING, "%s", sentence)
        self._wrong[kind] = sentence, math.inf

    def _pause(self, kind: Kind) -> float:
        """Seconds to wait before the next try."""
        seconds = pause_after(
            self._failures[kind],
            self._jitter,
            first=_FIRST_PAUSE_SECONDS,
            longest=_LONGEST_PAUSE_SECONDS,
        )
        return max(seconds, self._at_least[kind])

    def _set_listed(self, kind: Kind, listed: bool) -> None:
        self._listed[kind] = listed
        if all(self._listed.values()):
            self._all_listed.set()
        else:
            self._all_listed.clear()


def labels_of(kind: Kind) -> dict[str, str] | None:
    """By which labels objects of a kind are selected, None: all of them."""
    return _OURS if kind in SUPPORTING else None
