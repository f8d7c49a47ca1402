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
from collections.abc import Awaitable
from functools import partial

from vcjob.api.kinds import JOB, NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from vcjob.api.names import OUT_OF_SYNC
from vcjob.api.types import Object
from vcjob.controller.clock import Clock, SystemClock
from vcjob.controller.cluster import Cluster, ClusterError, Conflict, Invalid, NotFound
from vcjob.controller.parallel import for_each
from vcjob.controller.reading import read_job
from vcjob.controller.recorder import record_event
from vcjob.core.draft import Told
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.core.scheduling.ledger import BookedGang, BookedPod, Key
from vcjob.core.scheduling.places import Gang, Wait
from vcjob.core.scheduling.setbacks import (
    TAKEN_BACK,
    Setbacks,
    is_clearing,
    is_stuck,
    is_taken_back,
    pods_to_delete,
    taken_back,
)
from vcjob.core.times import timestamp
from vcjob.kubernetes.gang_following import Take, follow

GRACE_SECONDS = 60.0
"""How long pods of a gang may find no node before the gang is taken back."""

_AT_ONCE = 16
_PAUSE_SECONDS = 0.05
"""Between two passes: one pass for a burst of changes."""
_RETRY_SECONDS = 1.0
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
    """

    def __init__(
        self,
        cluster: Cluster,
        everything: Cluster,
        clock: Clock | None = None,
        *,
        grace: float = GRACE_SECONDS,
        pause: float = _PAUSE_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._everything = everything
        self._clock = clock or SystemClock()
        self._pause = pause
        self._books = ClusterBooks()
        self._setbacks = Setbacks(grace)
        self._generations: dict[str, object] = {}
        self._clearing: set[Key] = set()
        self._deleted: set[str] = set()
        self._told_at: dict[str, float] = {}
        self._again_at: float | None = None
        self._status_apart = False
        self._unlisted = {NODE, POD, JOB, QUEUE, PRIORITY_CLASS, POD_GROUP}
        self._woken = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether all that there is has been seen; before that nothing is admitted."""
        return not self._unlisted

    @property
    def waiting(self) -> int:
        """How many gangs wait for admission."""
        return len(self._books.ledger.waiting)

    async def run(self) -> None:
        """Decide until cancelled."""
        books = self._books
        takes: dict[Kind, tuple[Cluster, Take]] = {
            NODE: (self._everything, books.enter_node),
            POD: (self._everything, books.enter_pod),
            JOB: (self._cluster, self._take_job),
            QUEUE: (self._cluster, books.enter_queue),
            PRIORITY_CLASS: (self._cluster, books.enter_class),
            POD_GROUP: (self._cluster, self._take_group),
        }
        async with asyncio.TaskGroup() as tasks:
            for kind, (cluster, take) in takes.items():
                listed = partial(self._unlisted.discard, kind)
                tasks.create_task(
                    follow(cluster, kind, take, self._clock, listed=listed, changed=self._woken.set)
                )
            tasks.create_task(self._schedule())

    def _take_job(self, obj: Object, /, *, gone: bool) -> None:
        metadata = obj["metadata"]
        uid, generation = metadata["uid"], metadata.get("generation")
        if gone:
            self._generations.pop(uid, None)
        elif generation is not None and self._generations.get(uid) == generation:
            return
        else:
            self._generations[uid] = generation
        job, _ = read_job(obj)
        self._books.enter_job(job, gone=gone)

    def _take_group(self, group: Object, /, *, gone: bool) -> None:
        if gone:
            uid = group["metadata"]["uid"]
            self._setbacks.forget(uid)
            self._told_at.pop(uid, None)
        self._books.enter_group(group, gone=gone)

    async def _schedule(self) -> None:
        while True:
            await self._wake()
            await asyncio.sleep(self._pause)
            self._woken.clear()
            if self.is_ready:
                await self._pass()

    async def _wake(self) -> None:
        """Return once something has changed, or something is due."""
        due = self._next_due()
        if due is None:
            await self._woken.wait()
            return
        waiting = {
            asyncio.ensure_future(self._clock.sleep_until(due)),
            asyncio.ensure_future(self._woken.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    def _next_due(self) -> float | None:
        setback = self._setbacks.next_due(only_pauses=bool(self._clearing))
        times = [when for when in (self._again_at, setback) if when is not None]
        return min(times, default=None)

    def _look_again(self, when: float) -> None:
        """Have a pass made at that time, whether or not anything changes until then."""
        self._again_at = when if self._again_at is None else min(self._again_at, when)

    async def _pass(self) -> None:
        """Decide and write whatever is to be decided from what the books say now."""
        now, books = self._clock.now(), self._books
        ledger = books.ledger
        changed, ledger.changed = ledger.changed, {}
        for key in changed:
            gang = ledger.gangs.get(key)
            self._setbacks.note(key, gang, now)
            if gang is not None and is_taken_back(gang) and is_clearing(gang):
                self._clearing.add(key)
        if self._again_at is not None and self._again_at <= now:
            self._again_at = None
            books.room_grew = True
        books.room_grew |= self._setbacks.end_pauses(now)
        await self._clear(now)
        await self._take_back(now)
        if ledger.waiting and (books.room_grew or ledger.waiting.keys() & changed.keys()):
            books.room_grew = False
            await self._admit(now)
        books.room_grew = False
        to_let_go, ledger.to_bind = ledger.to_bind, {}
        for key in to_let_go:
            if key in ledger.gangs:
                await self._attempt(key, self._let_go(key, ledger.gangs[key]))
        for key in changed.keys() | ledger.changed.keys():
            if key in ledger.gangs:
                await self._attempt(key, self._show(key, ledger.gangs[key]))

    async def _attempt(self, key: Key, doing: Awaitable[None]) -> None:
        """Do something about one gang; what fails is tried again soon, and hinders no other."""
        try:
            await doing
        except (NotFound, Conflict):
            return  # something is gone, or another of its name is there: the watch tells
        except ClusterError as error:
            _log.warning("gang %s/%s: %s", *key, error)
            self._books.ledger.changed[key] = None
            self._books.ledger.to_bind[key] = None
            self._look_again(self._clock.now() + _RETRY_SECONDS)

    async def _admit(self, now: float) -> None:
        answers = list(self._books.answers(self._setbacks.put_off))

        async def write(answer: tuple[Key, Gang, Wait | None]) -> None:
            key, gang, wait = answer
            status = self._admitted(gang) if wait is None else self._waits(key, gang, wait, now)
            if status:
                await self._attempt(key, self._write(key, gang.uid, status))

        failures = await for_each(answers, write, at_once=_AT_ONCE)
        if failures:
            raise failures[0]  # a fault: what the cluster refuses was dealt with

    def _admitted(self, gang: Gang) -> Object:
        fits = f"{gang.name} may start: there is room for all that it needs to start"
        self._told_at.pop(gang.uid, None)
        return {"phase": "Inqueue", "conditions": [self._condition("Scheduled", "Fits", fits)]}

    def _waits(self, key: Key, gang: Gang, wait: Wait, now: float) -> Object | None:
        """The status of a gang that waits; None if it says so already, or did a moment ago."""
        booked = self._books.ledger.gangs.get(key)
        old = ((booked.group if booked else None) or {}).get("status") or {}
        last = (old.get("conditions") or [{}])[-1]
        if old.get("phase") == "Pending" and last.get("type") == "Unschedulable":
            if (last.get("reason"), last.get("message")) == (wait.reason, wait.message):
                return None
            told = self._told_at.get(gang.uid, 0.0)
            if last.get("reason") == wait.reason and now < told + _SAY_AGAIN_SECONDS:
                self._look_again(told + _SAY_AGAIN_SECONDS)
                return None
        self._told_at[gang.uid] = now
        return self._pending(wait)

    def _pending(self, wait: Wait) -> Object:
        condition = self._condition("Unschedulable", wait.reason, wait.message)
        return {"phase": "Pending", "conditions": [condition]}

    async def _let_go(self, key: Key, gang: BookedGang) -> None:
        """Take our gate off the pods of a gang that may start now."""
        pods = self._books.to_let_go(gang)
        if not pods:
            return
        if wait := self._books.lost_room(gang):
            assert gang.group is not None
            await self._write(key, gang.group["metadata"]["uid"], self._pending(wait))
            return

        async def remove_gate(pod: BookedPod) -> None:
            # Ours is the only one: pods with other gates are left to those who set these.
            without = {"spec": {"schedulingGates": None}}
            try:
                patched = await self._cluster.patch(POD, *pod.key, without, uid=pod.uid)
            except (NotFound, Conflict, Invalid):
                return  # it is gone, or changed: the watch tells
            if pod.uid in gang.pods:  # else the watch has told meanwhile that it is gone
                self._books.enter_pod(patched)

        _raise_first(await for_each(pods, remove_gate, at_once=_AT_ONCE))

    async def _take_back(self, now: float) -> None:
        """Take back the least urgent of the gangs whose time is over, one at a time.

        The room of one may be all that the others lack.
        """
        gangs = self._books.ledger.gangs
        due = [key for key in self._setbacks.due(now) if not self._clearing]
        for key in due:
            if key not in gangs or not is_stuck(gangs[key]):
                self._setbacks.note(key, gangs.get(key), now)
        due = [key for key in due if key in gangs and is_stuck(gangs[key])]
        if due:
            key = self._books.least_urgent(due)
            await self._attempt(key, self._take_back_one(key, gangs[key], now))

    async def _take_back_one(self, key: Key, gang: BookedGang, now: float) -> None:
        """Write down what is done, then do it: whoever comes after a crash goes on from there."""
        assert gang.group is not None
        uid = gang.group["metadata"]["uid"]
        message = taken_back(gang.group["metadata"]["name"], gang, self._setbacks.grace)
        await self._write(key, uid, self._pending(Wait(TAKEN_BACK, message)))
        self._setbacks.take_back(key, uid, now)
        self._clearing.add(key)
        told = Told("Warning", TAKEN_BACK, message)
        await record_event(self._cluster, gang.group, told, now, POD_GROUP)
        await self._clear(now)

    async def _clear(self, now: float) -> None:
        """Delete the pods of gangs that were taken back, until all are gone."""
        for key in sorted(self._clearing):
            gang = self._books.ledger.gangs.get(key)
            if gang is None or not is_clearing(gang):
                self._clearing.discard(key)
                self._setbacks.quiet_since(now)
                self._books.room_grew = True
                continue
            pods = [pod for pod in pods_to_delete(gang) if pod.uid not in self._deleted]
            await self._attempt(key, self._delete(pods))
        if not self._clearing:
            self._deleted.clear()

    async def _delete(self, pods: list[BookedPod]) -> None:
        """Delete pods with the mark that it is done on purpose: no policy is to answer it."""

        async def delete(pod: BookedPod) -> None:
            mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
            try:
                await self._cluster.patch(POD, *pod.key, mark, uid=pod.uid)
                await self._cluster.delete(POD, *pod.key, uid=pod.uid)
            except (NotFound, Conflict):
                pass  # it is gone: the watch tells
            self._deleted.add(pod.uid)

        _raise_first(await for_each(pods, delete, at_once=_AT_ONCE))

    async def _show(self, key: Key, gang: BookedGang) -> None:
        """Write phase and counts of an admitted gang where they have changed."""
        if gang.group is None or gang.waits:
            return
        phase = gang.phase
        started = gang.started()
        if phase == "Inqueue" and started and started >= gang.least:
            phase = "Running"
        counts = {name.lower(): gang.phases[name] for name in ("Running", "Succeeded", "Failed")}
        old = gang.group.get("status") or {}
        if phase != gang.phase or any(old.get(name, 0) != counts[name] for name in counts):
            await self._write(key, gang.group["metadata"]["uid"], {"phase": phase, **counts})

    async def _write(self, key: Key, uid: str, status: Object) -> None:
        """Write a PodGroup's status, whether or not it is a subresource in this cluster."""
        group = await self._patch_group(key, uid, status)
        stored = group.get("status") or {}
        if any(stored.get(name) != status[name] for name in status.keys() - {"conditions"}):
            self._status_apart = True
            group = await self._patch_group(key, uid, status)
        gang = self._books.ledger.gangs.get(key)
        if gang and gang.group and gang.group["metadata"]["uid"] == uid:  # else it is gone by now
            self._books.enter_group(group)

    async def _patch_group(self, key: Key, uid: str, status: Object) -> Object:
        subresource = "status" if self._status_apart else ""
        return await self._cluster.patch(
            POD_GROUP, *key, {"status": status}, subresource=subresource, uid=uid
        )

    def _condition(self, type_: str, reason: str, message: str) -> Object:
        return {
            "type": type_,
            "status": "True",
            "lastTransitionTime": timestamp(self._clock.now()),
            "reason": reason,
            "message": message,
        }


def _raise_first(failures: list[Exception]) -> None:
    for error in failures:
        if not isinstance(error, ClusterError):
            raise error
    if failures:
        raise failures[0]
