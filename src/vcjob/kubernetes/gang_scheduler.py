"""Gangs on a cluster without Volcano's scheduler: admitted, let go, and taken back by us.

Pods are created gated, for Kubernetes' own scheduler (``core/scheduling/gating``). A gang is
admitted when its minimum fits the nodes and its queue; it is let go when its minimum exists and
still fits; when capacity went before all of it was bound, its pods are deleted and it waits anew.
Between a decision here and what Kubernetes' scheduler then does others may take the room: this is
the best that can be done beside it (docs/gangs.md). Decisions are those of
``core/scheduling/cluster_books``.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from vcjob.api.types import Key, Object
from vcjob.controller.clock import Clock, SystemClock
from vcjob.controller.cluster import Cluster
from vcjob.controller.parallel import for_each
from vcjob.core.draft import Told
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.core.scheduling.group_status import admitted, pending, progress, told
from vcjob.core.scheduling.leftover import Leftover
from vcjob.core.scheduling.places import Gang, Wait
from vcjob.core.scheduling.reservations import is_short
from vcjob.core.scheduling.setbacks import (
    Setbacks,
)
from vcjob.core.scheduling.undone import Undone
from vcjob.kubernetes.gang_attempts import FIRST_PAUSE_SECONDS, Attempts
from vcjob.kubernetes.gang_taking_back import TakingBack
from vcjob.kubernetes.gang_watching import GangWatching
from vcjob.kubernetes.gang_writing import AT_ONCE, GangWriter

GRACE_SECONDS = 60.0
"""How long pods of a gang may find no node before the gang is taken back."""

_PAUSE_SECONDS = 0.05
"""Between two passes: one pass for a burst of changes."""
_SAY_AGAIN_SECONDS = 30.0
"""How old what a waiting gang was told must be before it is told the same with other numbers."""

_log = logging.getLogger(__name__)


class GangScheduler:
    """Decides which gangs of a cluster may start.

    Args:
        cluster: Jobs, PodGroups, Queues and PriorityClasses, and where everything is written.
        everything: all nodes, and the pods of everybody; only read, and trimmed if need be.
        clock: the time.
        grace: how long (s) pods may find no node before their gang is taken back.
        pause: how long (s) changes are collected before they are looked at.
        places: where Jobs and PodGroups are followed instead, such as each of some namespaces.
    """

    def __init__(
        self,
        cluster: Cluster,
        everything: Cluster,
        clock: Clock | None = None,
        *,
        grace: float = GRACE_SECONDS,
        pause: float = _PAUSE_SECONDS,
        places: Sequence[Cluster] = (),
    ) -> None:
        self._clock = clock or SystemClock()
        self._pause = pause
        self._books = ClusterBooks(grace)
        self._undone = Undone()
        self._writer = GangWriter(cluster, self._books, self._undone)
        self._watching = GangWatching(
            cluster, places or (cluster,), everything, self._books, self._clock, self._forget
        )
        self._setbacks = Setbacks(grace)
        self._attempts = Attempts(self._clock, self._tell_refused)
        self._taking_back = TakingBack(self._books, self._writer, self._attempts, self._setbacks)
        self._told_at: dict[str, float] = {}
        self._again_at: float | None = None
        self._begun = False

    @property
    def is_ready(self) -> bool:
        """Whether all that there is has been seen; before that nothing is admitted."""
        return self._watching.is_complete

    @property
    def waiting(self) -> int:
        """How many gangs wait for admission."""
        return len(self._books.ledger.waiting)

    async def run(self) -> None:
        """Decide until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watching.run())
            tasks.create_task(self._schedule())

    def _forget(self, uid: str) -> None:
        self._setbacks.forget(uid)
        self._undone.forget(uid)
        self._told_at.pop(uid, None)

    async def _schedule(self) -> None:
        while True:
            await self._wake()
            await asyncio.sleep(self._pause)
            self._watching.changed.clear()
            if self.is_ready:
                if not self._begun:
                    self._books.restore_places()
                    self._begun = True
                await self._pass()

    async def _wake(self) -> None:
        """Return once something has changed, or something is due."""
        due = self._next_due()
        if due is None:
            await self._watching.changed.wait()
            return
        waiting = {
            asyncio.ensure_future(self._clock.sleep_until(due)),
            asyncio.ensure_future(self._watching.changed.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    def _next_due(self) -> float | None:
        now = self._clock.now()
        until = self._taking_back.under_way_until(now)
        setback = self._setbacks.next_due(only_pauses=until is not None)
        if setback is not None and setback <= now:  # it could not be taken back
            setback = now + FIRST_PAUSE_SECONDS
        others = (self._undone, self._attempts, self._books)
        times = (self._again_at, until, setback, *(one.next_due() for one in others))
        return min((when for when in times if when is not None), default=None)

    def _look_again(self, when: float) -> None:
        """Have a pass made at that time, whether or not anything changes until then."""
        self._again_at = when if self._again_at is None else min(self._again_at, when)

    async def _pass(self) -> None:
        """Decide and write whatever is to be decided from what the books say now."""
        now, books = self._clock.now(), self._books
        ledger = books.ledger
        again = dict.fromkeys(self._attempts.due(now, ledger.gangs))
        ledger.changed.update(again)
        ledger.to_bind.update(again)
        books.room_grew |= bool(again)
        changed, ledger.changed = ledger.changed, {}
        for key in changed:
            gang = ledger.gangs.get(key)
            self._setbacks.note(key, gang, now)
            if gang is None or gang.group is None:
                continue
            if (times := self._undone.note(gang.uid, gang.phase, now)) > 1:
                _log.warning(
                    "gang %s/%s: somebody else undid what was decided, %d times by now", *key, times
                )
            self._taking_back.note(key, gang, now)
        if self._again_at is not None and self._again_at <= now:
            self._again_at = None
            books.room_grew = True
        books.room_grew |= self._setbacks.end_pauses(now) | self._undone.end_pauses(now)
        books.look_for_overlooked(changed, now)
        await self._taking_back.go_on(now)
        for key, wait in books.fitting_no_more():
            gang = ledger.gangs.get(key)
            if gang and not self._undone.is_paused(gang.uid):  # else it is let be, and not let go
                let_wait = self._taking_back.let_wait_anew
                await self._attempts.make(key, "wait anew", let_wait, key, wait, now)
        grew, books.room_grew = books.room_grew or ledger.room_grew, False
        ledger.room_grew = False
        if grew:
            ledger.more_room()
            ledger.room_grew = False
        await self._complete_minimums()
        if ledger.waiting and (grew or ledger.waiting.keys() & changed.keys()):
            await self._admit(now)
        await self._let_all_go()
        for key in changed.keys() | ledger.changed.keys():
            if key in ledger.gangs:
                await self._attempts.make(key, "show", self._show, key, ledger.gangs[key])

    async def _complete_minimums(self) -> None:
        """Let go what gangs that have started lack of their minimum: before others are admitted.

        Otherwise small gangs could have all the room that one of them waits for, one by one.
        """
        books, gangs = self._books, self._books.ledger.gangs
        short = [key for key in books.ledger.to_bind if key in gangs and is_short(gangs[key])]
        leftover = books.leftover()
        for key in books.by_urgency(short):
            let_go = partial(self._let_go, beyond=False)
            await self._attempts.make(key, "let go", let_go, gangs[key], leftover)

    async def _let_all_go(self) -> None:
        """Let go what may start, of the most urgent gangs first."""
        books, ledger = self._books, self._books.ledger
        to_bind, ledger.to_bind = ledger.to_bind.keys() & ledger.gangs.keys(), {}
        if not to_bind:
            return
        leftover = books.leftover()
        to_bind -= {key for key, _ in books.fitting_no_more()}
        for key in books.by_urgency(to_bind):
            if key in ledger.gangs:
                await self._attempts.make(key, "let go", self._let_go, ledger.gangs[key], leftover)

    async def _admit(self, now: float) -> None:
        answers = list(self._books.answers(self._put_off))
        write_status = self._writer.write_status

        async def write(answer: tuple[Key, Gang, Wait | None]) -> None:
            key, gang, wait = answer
            if wait is not None:
                status = self._waits(key, gang, wait, now)
            else:
                self._told_at.pop(gang.uid, None)
                status = admitted(gang.name, now, self._books.ledger.group_of(key))
            if status:
                await self._attempts.make(key, "answer", write_status, key, gang.uid, status)

        failures = await for_each(answers, write, at_once=AT_ONCE)
        if failures:
            raise failures[0]  # a fault: what the cluster refuses was dealt with

    def _put_off(self, gang: Gang) -> Wait | None:
        return self._setbacks.put_off(gang) or self._undone.put_off(gang)

    def _waits(self, key: Key, gang: Gang, wait: Wait, now: float) -> Object | None:
        """The status of a gang that waits; None if it says so already, or did a moment ago."""
        group = self._books.ledger.group_of(key)
        reason, message = told(group)
        if (reason, message) == (wait.reason, wait.message):
            return None
        again = self._told_at.get(gang.uid, 0.0) + _SAY_AGAIN_SECONDS
        if reason == wait.reason and now < again:
            self._look_again(again)
            return None
        self._told_at[gang.uid] = now
        return pending(wait, now, group)

    async def _tell_refused(self, key: Key, why: str) -> None:
        if group := self._books.ledger.group_of(key):
            event = Told("Warning", "Refused", f"what is decided cannot be carried out: {why}")
            await self._writer.tell(group, event, self._clock.now())

    async def _let_go(self, gang: BookedGang, leftover: Leftover, *, beyond: bool = True) -> None:
        """Take our gate off the pods of a gang that may start now."""
        if pods := self._books.to_let_go(gang, leftover, beyond=beyond):
            await self._writer.lift_gates(gang, pods)

    async def _show(self, key: Key, gang: BookedGang) -> None:
        """Write phase and counts of an admitted gang where they have changed."""
        if status := progress(gang):
            await self._writer.write_status(key, gang.uid, status)
