"""Queues kept up: opened and closed as Commands ask, closed with the one above, and counted.

A state is written at once, counts of PodGroups at most once a second for each Queue and, in the
long run, ten times a second for all of them together. Whatever comes of a Command is written before
the Command is deleted: who takes over after a crash obeys it again, and that changes nothing.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Unpack

from vcjob.api.kinds import COMMAND, QUEUE
from vcjob.api.names import CLOSED_BY_PARENT
from vcjob.api.types import Object, key_of
from vcjob.controller.backing_off import pause_after
from vcjob.controller.clock import Clock
from vcjob.controller.cluster import (
    Cluster,
    ClusterError,
    Conflict,
    EventType,
    Forbidden,
    Invalid,
    NotFound,
    PatchOptions,
)
from vcjob.controller.queue_books import QueueBooks
from vcjob.controller.recorder import record_event
from vcjob.controller.records import Records
from vcjob.controller.work_queue import WorkQueue
from vcjob.core.draft import Told
from vcjob.core.queue_states import decide, is_marked, status_patch

_COUNT_SECONDS = 1.0
_COUNTS_A_SECOND = 10.0
"""For all Queues: what only informs must not use up what an API server can take."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 60.0
_WORKERS = 4

_log = logging.getLogger(__name__)


class QueueKeeper:
    """Looks after Queues.

    Args:
        cluster: where they live.
        records: gets what is written.
        books: what is known of them.
        work: the names of those that are to be looked at.
        clock: the time.
        jitter: a number from 0 to 1, drawn to spread repeated tries.
    """

    def __init__(
        self,
        cluster: Cluster,
        records: Records,
        books: QueueBooks,
        work: WorkQueue[str],
        clock: Clock,
        jitter: random.Random,
    ) -> None:
        self._cluster = cluster
        self._records = records
        self._clock = clock
        self._jitter = jitter
        self._work = work
        self._obeyed: dict[str, dict[str, bool]] = {}
        self._counted_at: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self.books = books

    async def run(self, until_known: Callable[[], Awaitable[None]]) -> None:
        """Work until cancelled, whenever ``until_known`` says that everything is known."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._work.wake(self._clock))
            for _ in range(_WORKERS):
                tasks.create_task(self._work_on(until_known))

    async def _work_on(self, until_known: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._work.filled()
            await until_known()
            name = self._work.take()
            if name is None:
                continue
            try:
                await self._pass(name)
            finally:
                self._work.done(name)
            await asyncio.sleep(0)  # let watches have their turn

    async def _pass(self, name: str) -> None:
        queue = self.books.queues.get(name)
        if queue is None:
            for memory in (self._counted_at, self._failures, self._obeyed):
                memory.pop(name, None)
            return
        try:
            await self._look_at(name, queue)
        except (NotFound, Conflict) as error:  # it has changed: the watch tells
            _log.debug("Queue %s: %s", name, error)
            self._put_off(name)
        except ClusterError as error:
            refused = isinstance(error, Forbidden | Invalid) and not self._failures.get(name)
            _log.log(logging.WARNING if refused else logging.INFO, "Queue %s: %s", name, error)
            self._put_off(name)
        except Exception:  # one Queue must not stop the others
            _log.exception("Queue %s: fault in the controller", name)
            self._put_off(name)

    async def _look_at(self, name: str, queue: Object) -> None:
        """Obey the oldest Command that was not, and bring mark and status to what they should be.

        Raises ClusterError.
        """
        commands = {one["metadata"]["uid"]: one for one in self.books.commands(name)}
        obeyed = {uid: gone for uid, gone in self._obeyed.get(name, {}).items() if uid in commands}
        new = [uid for uid in commands if uid not in obeyed]
        command = commands[new[0]] if new else None
        phases = self.books.phases(name)
        decision = decide(queue, self.books.above(name), sum(phases.values()), command)
        patch = status_patch(queue, decision.state, phases)
        wait = self._wait(name) if patch and "state" not in patch else 0.0
        if wait:
            patch = {}
            self._work.add_at(name, self._clock.now() + wait)
        if decision.is_marked and not is_marked(queue):
            queue = await self._mark(queue, "true")
        if patch:
            queue = await self._write(queue, patch)
        if is_marked(queue) and not decision.is_marked:
            queue = await self._mark(queue, None)
        await self._tell(queue, decision.told)
        if new:
            obeyed[new[0]] = False
            self._work.add(name)  # the next one
        self._obeyed[name] = obeyed
        for uid, is_deleted in [*obeyed.items()]:
            if not is_deleted:
                await self._cluster.delete(COMMAND, *key_of(commands[uid]), uid=uid)
                obeyed[uid] = True
        if not wait:  # what was refused before has been done
            self._failures.pop(name, None)

    def _wait(self, name: str) -> float:
        """How long (s) counts have to wait until they are written: longer, the more has failed."""
        if name not in self._counted_at:
            return 0.0
        interval = max(_COUNT_SECONDS, len(self.books.queues) / _COUNTS_A_SECOND)
        if failures := self._failures.get(name):
            interval = max(interval, self._pause(failures))
        return max(self._counted_at[name] + interval - self._clock.steady(), 0.0)

    async def _mark(self, queue: Object, value: str | None) -> Object:
        """Mark a Queue as closed with the one above it, or take the mark away."""
        patch = {"metadata": {"annotations": {CLOSED_BY_PARENT: value}}}
        return await self._patch(queue, patch, resource_version=_version(queue))

    async def _write(self, queue: Object, patch: Object) -> Object:
        """Write a status."""
        self._counted_at[queue["metadata"]["name"]] = self._clock.steady()
        as_decided = {"resource_version": _version(queue)} if "state" in patch else {}
        return await self._patch(queue, {"status": patch}, subresource="status", **as_decided)

    async def _patch(self, queue: Object, patch: Object, **options: Unpack[PatchOptions]) -> Object:
        """Patch a Queue: what was decided only if nobody has changed the Queue since."""
        options["uid"] = queue["metadata"]["uid"]
        patched = await self._cluster.patch(QUEUE, "", queue["metadata"]["name"], patch, **options)
        self._records.take(QUEUE, EventType.MODIFIED, patched)
        return patched

    async def _tell(self, queue: Object, told: Iterable[Told]) -> None:
        for one in told:
            await record_event(self._cluster, queue, one, self._clock.now(), QUEUE)

    def _put_off(self, name: str) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        self._work.add_at(name, self._clock.now() + self._pause(failures))

    def _pause(self, failures: int) -> float:
        return pause_after(
            failures, self._jitter, first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS
        )


def _version(queue: Object) -> str:
    return str(queue["metadata"]["resourceVersion"])
