"""The scheduler of this machine: admits gangs (PodGroups) whole and binds their pods to its node.

Decisions are those of ``gangs``, made from the books of ``ledger``; here are the watches that keep
the books, and what becomes of decisions: phase, counts and conditions of PodGroups, pods bound.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from vcjob.api.kinds import NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from vcjob.api.quantity import parse_quantity
from vcjob.api.queues import DEFAULT_QUEUE, ROOT, QueueState
from vcjob.api.types import Key, Object
from vcjob.controller.cluster import AlreadyExists, Cluster, Conflict, NotFound
from vcjob.core.scheduling.amounts import Amounts
from vcjob.core.scheduling.booked import BookedGang, BookedPod
from vcjob.core.scheduling.gangs import QueueLimits, admissions
from vcjob.core.scheduling.group_status import admitted, pending, progress, told
from vcjob.core.scheduling.ledger import Ledger, is_alone
from vcjob.core.scheduling.machine_room import MachineRoom
from vcjob.core.scheduling.places import OneMachine, Wait, shortage
from vcjob.core.scheduling.requests import new_queue, note_limits
from vcjob.core.times import timestamp
from vcjob.local.following import follow

_A_TURN = 200
_CORDONED = "the node takes no new pods (it was cordoned): kubectl uncordon it to go on"


class _Take(Protocol):
    def __call__(self, obj: Object, /, *, gone: bool) -> None: ...


class Scheduler:
    """Admits gangs and binds pods.

    Args:
        cluster: where the objects live.
        capacity: what this machine has, such as ``{"cpu": "8", "memory": "16Gi"}``; of a resource
            that is not named it has none. Raises InvalidQuantity.
        node: the name of this machine's node.
        clock: the time in seconds since 1970.
    """

    def __init__(
        self,
        cluster: Cluster,
        capacity: Mapping[str, str],
        *,
        node: str,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._capacity: Amounts = {name: parse_quantity(text) for name, text in capacity.items()}
        self._node = node
        self._clock = clock
        self._ledger = Ledger()
        self._queues: dict[str, QueueLimits] = {}
        self._classes: dict[str, Object] = {}
        self._cordoned = False
        self._room: MachineRoom | None = None
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Make the queues ``root`` and ``default``, then schedule until cancelled."""
        await make_queues(self._cluster)
        takes: dict[Kind, _Take] = {
            NODE: self._take_node,  # first, so that no pod is bound before it is known
            QUEUE: self._take_queue,
            PRIORITY_CLASS: self._take_class,
            POD_GROUP: self._ledger.enter_group,
            POD: self._ledger.enter_pod,
        }
        async with asyncio.TaskGroup() as tasks:
            for kind, take in takes.items():
                tasks.create_task(self._follow(kind, take))
            tasks.create_task(self._schedule())

    async def _follow(self, kind: Kind, take: _Take) -> None:
        def taken(obj: Object, gone: bool) -> None:
            take(obj, gone=gone)
            self._woken.set()

        await follow(self._cluster, kind, taken, listed=self._woken.set)

    def _take_node(self, node: Object, /, *, gone: bool) -> None:
        if node["metadata"]["name"] != self._node:
            return
        was, spec = self._cordoned, node.get("spec") or {}
        self._cordoned = not gone and spec.get("unschedulable") is True
        if was and not self._cordoned:
            self._ledger.more_room()

    def _take_queue(self, queue: Object, /, *, gone: bool) -> None:
        if note_limits(self._queues, queue, gone=gone):
            self._ledger.more_room()

    def _take_class(self, one: Object, /, *, gone: bool) -> None:
        if gone:
            self._classes.pop(one["metadata"]["name"], None)
        else:
            self._classes[one["metadata"]["name"]] = one
        self._ledger.room_grew = True

    async def _schedule(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            await asyncio.sleep(0)  # the other watches catch up: one pass for a burst of changes
            await self._pass()

    async def _pass(self) -> None:
        """Decide and write whatever is to be decided from what the books say now."""
        books = self._ledger
        if books.room_grew:
            books.more_room()
        if books.waiting and (books.room_grew or books.waiting.keys() & books.changed.keys()):
            await self._admit()
        books.room_grew = False
        self._room = None
        to_bind, books.to_bind = books.to_bind, {}
        for key in books.by_urgency(to_bind, self._classes):
            if key in books.gangs:
                await self._bind(key, books.gangs[key])
        changed, books.changed = books.changed, {}
        for key in changed:
            if key in books.gangs:
                await self._show(key, books.gangs[key])

    async def _admit(self) -> None:
        waiting = self._ledger.waiting_gangs(self._classes)
        gangs = [gang for _, gang in waiting.values()]
        held = self._ledger.held_by_queue()
        place = OneMachine(self._capacity, held.values())
        admitted_some = False
        for gang, wait in list(admissions(gangs, self._queues, place, held)):
            key, _ = waiting[gang.uid]
            if wait is None:
                admitted_some = True
                await self._write(key, gang.uid, admitted(gang.name, self._clock()))
            elif status := self._waits(key, wait):
                await self._write(key, gang.uid, status)
        if admitted_some:
            self._ledger.more_room()  # what kept its order behind them may go on

    def _waits(self, key: Key, wait: Wait) -> Object | None:
        """The status of a gang that waits; None if it says so already."""
        booked = self._ledger.gangs.get(key)
        if told(booked.group if booked else None) == (wait.reason, wait.message):
            return None
        return pending(wait, self._clock())

    async def _bind(self, key: Key, gang: BookedGang) -> None:
        """Bind the pods of a gang, if it may start and all of its minimum is there."""
        if gang.waits or (gang.group is not None and not gang.is_complete()):
            return
        if gang.group is None and not is_alone(key):
            for pod in list(gang.unbound.values()):
                await self._tell(pod, f"its PodGroup {key[1]} is not there")
            return
        provided_for = gang.provided_for()
        queue = None if gang.group is None else gang.queue
        for number, pod in enumerate(list(gang.unbound.values()), start=1):
            missing = self._lacks(queue, pod, held=pod.uid in provided_for)
            if missing:
                await self._tell(pod, missing)
            elif await self._bind_pod(pod) and pod.uid not in provided_for:
                self._what_is_left().take(queue, pod.requests)
            if number % _A_TURN == 0:
                await asyncio.sleep(0)

    def _lacks(self, queue: str | None, pod: BookedPod, *, held: bool) -> str:
        """Why a pod is not bound, as a sentence; ``held``: there is room held for it."""
        if self._cordoned:
            return _CORDONED
        if held or not pod.requests:
            return shortage(pod.requests, self._capacity, self._ledger.used)
        return self._what_is_left().lacks(queue, pod.requests)

    def _what_is_left(self) -> MachineRoom:
        """What is left in this pass; reckoned only when somebody asks."""
        if self._room is None:
            books = self._ledger
            in_order = {name for name, limits in self._queues.items() if limits.strict_order}
            if in_order:
                in_order &= {books.gangs[key].queue for key in books.waiting}
            held = books.held_by_queue()
            self._room = MachineRoom(self._capacity, self._queues, held, in_order)
        return self._room

    async def _bind_pod(self, pod: BookedPod) -> bool:
        """Bind a pod; returns whether it was still there.

        The condition comes first: with the node's name the node takes the pod over.
        """
        scheduled = self._condition("PodScheduled")
        bound = {"spec": {"nodeName": self._node}}
        try:
            await self._patch_conditions(pod, scheduled)
            patched = await self._cluster.patch(POD, *pod.key, bound, uid=pod.uid)
        except (NotFound, Conflict):
            return False  # it is gone, and perhaps another of its name is there: the watch tells
        self._ledger.enter_pod(patched)
        return True

    async def _tell(self, pod: BookedPod, missing: str) -> None:
        """Say on the pod why it is not bound."""
        if pod.told == missing:
            return
        pod.told = missing
        condition = self._condition("PodScheduled", "Unschedulable", missing, status="False")
        try:
            await self._patch_conditions(pod, condition)
        except (NotFound, Conflict):
            return  # as above

    async def _patch_conditions(self, pod: BookedPod, condition: Object) -> None:
        status = {"status": {"conditions": [condition]}}
        await self._cluster.patch(POD, *pod.key, status, subresource="status", uid=pod.uid)

    async def _show(self, key: Key, gang: BookedGang) -> None:
        """Write phase and counts of an admitted gang where they have changed."""
        if status := progress(gang):
            await self._write(key, gang.uid, status)

    async def _write(self, key: Key, uid: str, status: Object) -> None:
        try:
            group = await self._cluster.patch(POD_GROUP, *key, {"status": status}, uid=uid)
        except (NotFound, Conflict):
            return  # it is gone, and perhaps another of its name is there: the watch tells
        self._ledger.enter_group(group)

    def _condition(
        self, type_: str, reason: str = "", message: str = "", status: str = "True"
    ) -> Object:
        condition = {"type": type_, "status": status}
        condition["lastTransitionTime"] = timestamp(self._clock())
        if reason:
            condition.update(reason=reason, message=message)
        return condition


async def make_queues(cluster: Cluster) -> None:
    """Make the queues ``root`` and ``default``, unless the user has."""
    for name, spec in ((ROOT, {"weight": 1}), (DEFAULT_QUEUE, {"weight": 1, "parent": ROOT})):
        try:
            await cluster.create(QUEUE, new_queue(name, spec))
        except AlreadyExists:
            continue  # the user's own
        status = {"status": {"state": QueueState.OPEN}}
        await cluster.patch(QUEUE, "", name, status, subresource="status")
