"""What the controller knows of the cluster, kept up by lists and watches whatever goes wrong.

A kind that cannot be listed keeps the controller from acting: "the pods cannot be listed" must not
be taken for "there are no pods". A watch that breaks is only late.
"""

import asyncio
import logging
import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass

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
"""Each time that so many watches of a kind broke without any news it is listed anew."""

_SURE_SECONDS = 10.0
"""A watch that was begun so long ago and did not break since is taken to work."""

_log = logging.getLogger(__name__)


@dataclass
class _Trying:
    """Something that may fail again and again, and what is wrong with it.

    ``until``: the steady clock's time up to which the sentence is believed.
    """

    failures: int = 0
    at_least: float = 0.0  # seconds that the server asked us to wait
    wrong: str = ""
    until: float = math.inf

    def fail(self, sentence: str, error: ClusterError) -> None:
        """Once more it did not work."""
        self.failures += 1
        self.at_least = (isinstance(error, Unavailable) and error.retry_after) or 0.0
        _log.log(logging.DEBUG if sentence == self.wrong else logging.WARNING, "%s", sentence)
        self.wrong, self.until = sentence, math.inf

    def succeed(self) -> None:
        """It works."""
        self.failures, self.at_least, self.wrong = 0, 0.0, ""

    def pause(self, jitter: random.Random) -> float:
        """Seconds to wait before the next try."""
        seconds = pause_after(
            self.failures, jitter, first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS
        )
        return max(seconds, self.at_least)


class Caches:
    """Lists and watches of all kinds that decisions read, into ``records``.

    Args:
        cluster: where the objects live.
        records: gets every object and every change.
        clock: the time.
        jitter: a number from 0 to 1, drawn to spread repeated tries.
        unwatched: kinds that are left out.
        of_others: follow supporting objects of others, too. One that stands in a Job's way is then
            seen to go; else only the Job's next try finds out.
    """

    def __init__(
        self,
        cluster: Cluster,
        records: Records,
        clock: Clock,
        jitter: random.Random,
        unwatched: Collection[Kind] = (),
        *,
        of_others: bool = False,
    ) -> None:
        self._selected = () if of_others else SUPPORTING
        self._kinds = tuple(kind for kind in _KINDS if kind not in unwatched)
        self._cluster = cluster
        self._records = records
        self._clock = clock
        self._jitter = jitter
        self._listed = dict.fromkeys(self._kinds, False)
        self._lists = {kind: _Trying() for kind in self._kinds}
        self._watches = {kind: _Trying() for kind in self._kinds}
        self._whole = False  # whether all kinds were listed in one go
        self._all_listed = asyncio.Event()

    @property
    def synced(self) -> bool:
        """Whether every kind is known as a whole."""
        return self._all_listed.is_set()

    @property
    def troubles(self) -> Mapping[Kind, str]:
        """Which kinds cannot be listed or watched at the moment, one sentence each."""
        now = self._clock.steady()
        return {
            kind: trying.wrong
            for tryings in (self._watches, self._lists)  # a list that fails is the worse of the two
            for kind, trying in tryings.items()
            if trying.wrong and now <= trying.until
        }

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
        self._whole = False
        while True:
            for kind in self._kinds:
                self._set_listed(kind, False)
            listed = {kind: await self._try_list(kind) for kind in self._kinds}
            since = {kind: version for kind, version in listed.items() if version is not None}
            if len(since) == len(self._kinds):
                self._whole = True
                self._note_listed()
                return since
            failed = [kind for kind in self._kinds if kind not in since]
            await self._clock.sleep(self._lists[failed[0]].pause(self._jitter))
            for kind in failed:
                await self._list(kind)
            # What was listed first may have changed long ago: once more.

    async def _list(self, kind: Kind) -> str:
        """The version from which to watch, however long it takes."""
        while (version := await self._try_list(kind)) is None:
            await self._clock.sleep(self._lists[kind].pause(self._jitter))
        return version

    async def _try_list(self, kind: Kind) -> str | None:
        try:
            listed = await self._cluster.list(kind, labels=self._labels_of(kind))
        except ClusterError as error:
            self._lists[kind].fail(f"cannot list {kind.plural}: {error}", error)
            self._set_listed(kind, False)
            return None
        self._records.replace(kind, listed.items)
        self._lists[kind].succeed()
        self._set_listed(kind, True)
        return listed.resource_version

    async def _follow(self, kind: Kind, since: str) -> None:
        trying = self._watches[kind]
        while True:
            began = self._clock.steady()
            is_old = False
            try:
                async for event in self._cluster.watch(kind, since, labels=self._labels_of(kind)):
                    since = event.object["metadata"]["resourceVersion"]
                    trying.succeed()
                    if event.type is not EventType.BOOKMARK:
                        self._records.take(kind, event.type, event.object)
                raise Unavailable("the stream ended")  # nobody promised that it would
            except Gone as error:
                is_old = True
                if trying.failures:  # again, and without news in between
                    trying.fail(f"cannot watch {kind.plural}: {error}", error)
                else:
                    trying.failures = 1
            except ClusterError as error:
                if self._clock.steady() - began > _SURE_SECONDS:
                    trying.succeed()  # it did work meanwhile
                trying.fail(f"cannot watch {kind.plural}: {error}", error)
            if not is_old or trying.failures > 1:
                seconds = trying.pause(self._jitter)
                trying.until = self._clock.steady() + seconds + _SURE_SECONDS
                await self._clock.sleep(seconds)
            if is_old or trying.failures % _WATCH_TRIES == 0:
                since = await self._list(kind)

    def _set_listed(self, kind: Kind, listed: bool) -> None:
        self._listed[kind] = listed
        self._note_listed()

    def _note_listed(self) -> None:
        if self._whole and all(self._listed.values()):
            self._all_listed.set()
        else:
            self._all_listed.clear()

    def _labels_of(self, kind: Kind) -> dict[str, str] | None:
        """By which labels objects of a kind are selected, None: all of them."""
        return _OURS if kind in self._selected else None
