"""What the scheduler of gangs on a cluster knows, and its decisions from that.

The ledger keeps gangs and their pods, the books of the nodes what is left of them. Which pods a
gang will have, before there are any, is told by its Job.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType

import msgspec

from vcjob.api.names import GROUP_NAME
from vcjob.api.types import Job, Key, Object, key_of
from vcjob.core.scheduling.amounts import add
from vcjob.core.scheduling.booked import BookedGang, BookedPod, Vacancy
from vcjob.core.scheduling.fitting import Nodes
from vcjob.core.scheduling.gangs import QueueLimits, QueueRoom, admissions, fitting_no_more
from vcjob.core.scheduling.gating import GATE
from vcjob.core.scheduling.job_pods import JobPods
from vcjob.core.scheduling.ledger import Ledger
from vcjob.core.scheduling.leftover import Leftover
from vcjob.core.scheduling.node_books import NodeBooks
from vcjob.core.scheduling.overlooked import Overlooked
from vcjob.core.scheduling.places import Gang, Wait
from vcjob.core.scheduling.requests import note_limits
from vcjob.core.scheduling.reservations import Reservations, has_begun, is_to_start
from vcjob.core.scheduling.setbacks import is_clearing
from vcjob.core.scheduling.shapes import PodShape

PutOff = Callable[[Gang], Wait | None]
"""Why a gang may not start yet, whatever room there is."""

_Counts = Callable[[BookedGang], bool]


class ClusterBooks:
    """Gangs, their Jobs and pods, queues, priorities, nodes. Each change is entered as it comes.

    ``ledger.changed`` are gangs whose phase or counts may have to be written, ``ledger.to_bind``
    those with pods that may now be let go. ``room_grew`` tells that what waits for room may fit by
    now.

    Args:
        grace: how long (s) room is held for pods that find no node though they seem to fit.
    """

    def __init__(self, grace: float) -> None:
        self.ledger = Ledger(GATE)
        self.nodes = NodeBooks()
        self.room_grew = False
        self._queues: dict[str, QueueLimits] = {}
        self._classes: dict[str, Object] = {}
        self._priorities: dict[str, int] = {}
        self._jobs = JobPods()
        self._overlooked = Overlooked(grace)
        self._grown: set[Key] = set()
        self._refused: set[Key] = set()

    def enter_node(self, node: Object, *, gone: bool = False) -> None:
        """A node as it is now, or as it last was."""
        self.room_grew |= self.nodes.enter_node(node, gone=gone)

    def enter_pod(self, pod: Object, *, gone: bool = False) -> None:
        """A pod of the cluster, whoever's, as it is now or as it last was."""
        self.room_grew |= self.nodes.enter_pod(pod, gone=gone)
        if (pod["metadata"].get("annotations") or {}).get(GROUP_NAME):
            self.ledger.enter_pod(pod, gone=gone)

    def enter_group(self, group: Object, *, gone: bool = False) -> None:
        """A PodGroup as it is now, or as it last was."""
        key = key_of(group)
        old = self.ledger.gangs.get(key)
        queue = old.queue if old and old.waits else ""
        asked = (old.uid, old.asks) if old and _waits_for_pods(old) else None
        self.ledger.enter_group(group, gone=gone)
        new = self.ledger.gangs.get(key)
        if new is None or not _waits_for_pods(new):
            self._grown.discard(key)
        elif asked and asked != (new.uid, new.asks):
            self._grown.add(key)
        if self._keeps_order(queue) and not (new and new.waits):
            self.room_grew = True  # pods that waited behind it may follow

    def enter_job(self, job: Job, *, gone: bool = False) -> None:
        """A Job as it is now, or as it last was."""
        self.room_grew |= self._jobs.enter_job(job, gone=gone)

    def enter_queue(self, queue: Object, *, gone: bool = False) -> None:
        """A Queue as it is now, or as it last was."""
        self.room_grew |= note_limits(self._queues, queue, gone=gone)

    def enter_class(self, one: Object, *, gone: bool = False) -> None:
        """A PriorityClass as it is now, or as it last was."""
        name = one["metadata"]["name"]
        if gone:
            self._classes.pop(name, None)
        else:
            self._classes[name] = one
        self._priorities = {name: int(one.get("value") or 0) for name, one in self._classes.items()}
        self.room_grew = True

    def restore_places(self) -> None:
        """Keep the places of pods that went, and were not let go anew, before the books began.

        To be called once, when all that there is has been entered.
        """
        reservations = self._reservations()
        for gang in self.ledger.gangs.values():
            gang.vacated.update(
                (name, Vacancy(task)) for name, task in reservations.lost(gang).items()
            )

    def answers(self, put_off: PutOff) -> Iterator[tuple[Key, Gang, Wait | None]]:
        """Every waiting gang with its answer: None if it is admitted now, else why it waits.

        Left out are gangs whose Job is not known yet, and those taken back whose pods are not all
        gone.
        """
        waiting: dict[str, tuple[Key, Gang]] = {}
        reservations = self._reservations()
        for uid, (key, gang) in self.ledger.waiting_gangs(self._classes).items():
            booked = self.ledger.gangs[key]
            if self._jobs.is_known(booked) and not is_clearing(booked):
                pods = tuple(reservations.needed(booked).items())
                gang = msgspec.structs.replace(gang, pods=pods, put_off=put_off(gang))
                waiting[uid] = key, gang
        if not waiting:
            return
        place, held = self._place(_all, keep_free=True), self._held(_all)
        gangs = [gang for _, gang in waiting.values()]
        answers = list(admissions(gangs, self._queues, place, held))
        crowding = self._crowding([waiting[gang.uid] for gang, wait in answers if wait is None])
        for gang, wait in answers:
            key = waiting[gang.uid][0]
            yield key, gang, wait or crowding.get(key)

    def _crowding(self, chosen: list[tuple[Key, Gang]]) -> dict[Key, Wait]:
        """Those of the gangs to be admitted after which not all would fit any more, and why.

        Nodes are filled one gang after another, and pods of several sizes may fit in one order and
        not in another. Whoever would not pass ``fitting_no_more`` afterwards would be admitted and
        taken back for ever.
        """
        crowding: dict[Key, Wait] = {}
        while chosen and (found := self.fitting_no_more(dict(chosen))):
            key, gang = chosen.pop()
            other = self.ledger.gangs[found[0][0]]
            message = f"{gang.name} would leave too little room for {other.name}, which is admitted"
            crowding[key] = dict(found).get(key) or Wait("NotEnoughResources", message)
        return crowding

    def fitting_no_more(
        self, joining: Mapping[Key, Gang] = MappingProxyType({})
    ) -> list[tuple[Key, Wait]]:
        """Admitted gangs of which nothing was let go that do not fit any more, and why.

        The most urgent keep their room, if not all of them can; those that ask for more than they
        were admitted for come last. ``joining`` are counted as if they were admitted.
        """
        keys = [key for key, gang in self.ledger.gangs.items() if _waits_for_pods(gang)]
        if not (keys or joining):
            return []
        reservations, gangs = self._reservations(), {}
        for key in sorted(self.by_urgency([*keys, *joining]), key=self._grown.__contains__):
            booked = self.ledger.gangs[key]
            pods = joining[key].pods if key in joining else reservations.held(booked).items()
            gangs[booked.uid] = (
                key,
                Gang(booked.uid, booked.name, booked.queue, booked.minimum, pods=tuple(pods)),
            )
        found = fitting_no_more(
            [gang for _, gang in gangs.values()],
            self._queues,
            self._place(_has_begun),
            self._held(_has_begun),
        )
        return [(gangs[gang.uid][0], wait) for gang, wait in found]

    def leftover(self) -> Leftover:
        """What is left for pods that nothing is held for."""
        return Leftover(
            lambda: self._place(_all, keep_free=True),
            lambda: QueueRoom(self._queues, self._held(_all)),
        )

    def to_let_go(
        self, gang: BookedGang, leftover: Leftover, *, beyond: bool = True
    ) -> list[BookedPod]:
        """The pods of a gang that may start now, those that are hardest to place first.

        Of a gang that has not started these are its minimum, once all of it is there. Of one that
        has, those that take the places of pods that were deleted, and as many more as there is room
        for, which are taken from ``leftover``: what its minimum lacks, then if ``beyond`` others.
        """
        if gang.group is None or gang.waits:
            return []
        held = [pod for pod in gang.unbound.values() if pod.is_held and not pod.is_finished]
        if not held:
            return []
        held.sort(key=_in_order)
        reservations = self._reservations()
        if is_to_start(gang):
            chosen = reservations.of_minimum(gang, held) if gang.is_complete() else []
        else:
            kept, others = _kept(held, reservations.vacated(gang))
            lacking = {pod.uid for pod in reservations.of_minimum(gang, held)}
            parts = [pod for pod in others if pod.uid in lacking]
            chosen = [*kept, *self._that_fit(gang, parts, leftover)]
            if beyond and not self._waits_in_turn(gang.queue):
                more = [pod for pod in others if pod.uid not in lacking]
                chosen += self._that_fit(gang, more, leftover)
        capacity = self.nodes.place().capacity
        sizes = self._jobs.sizes(gang, {pod.task for pod in chosen}, capacity)
        return sorted(chosen, key=lambda pod: (-sizes[pod.task], pod.task, *_in_order(pod)))

    def by_urgency(self, keys: Iterable[Key]) -> list[Key]:
        """Gangs, those of the highest priority first, of equal ones the oldest."""
        return self.ledger.by_urgency(keys, self._classes)

    def look_for_overlooked(self, changed: Iterable[Key], now: float) -> None:
        """See which pods find no node though they seem to fit: nothing is held for them for ever.

        ``changed`` are the gangs that changed since the last time.
        """
        for key in changed:
            gang = self.ledger.gangs.get(key)
            if gang is not None and gang.refused:
                self._refused.add(key)
            else:
                self._refused.discard(key)
        place = self.nodes.place() if self._refused else None
        refused = {}
        for gang in (self.ledger.gangs[key] for key in self._refused):
            for task in {pod.task for pod in gang.refused.values()}:
                assert place is not None
                refused[gang.uid, task] = place.has_room(self._jobs.shape(gang, task))
        self.room_grew |= self._overlooked.look(refused, now)

    def next_due(self) -> float | None:
        """When ``look_for_overlooked`` is due next (seconds since 1970)."""
        return self._overlooked.next_due()

    def _that_fit(
        self, gang: BookedGang, pods: list[BookedPod], leftover: Leftover
    ) -> Iterator[BookedPod]:
        """As many of the pods as there is room for, largest first."""
        counts = Counter(pod.task for pod in pods)
        sizes = self._jobs.sizes(gang, counts, self.nodes.place().capacity)
        for task in sorted(counts, key=lambda one: (-sizes[one], one)):
            fits = leftover.take(gang.queue, self._jobs.shape(gang, task), counts[task])
            yield from [pod for pod in pods if pod.task == task][:fits]

    def _waits_in_turn(self, queue: str) -> bool:
        """Whether a gang waits in a queue that keeps its order."""
        waiting = (self.ledger.gangs[key].queue for key in self.ledger.waiting)
        return self._keeps_order(queue) and queue in waiting

    def _keeps_order(self, queue: str) -> bool:
        return queue in self._queues and self._queues[queue].strict_order

    def _place(self, counts: _Counts, *, keep_free: bool = False) -> Nodes:
        """The nodes without what is held for gangs that count.

        What is held and fits nowhere now (pods were bound where they are in the way) takes nothing.
        With ``keep_free`` nothing else gets the bits of room either that a minimum waits to see
        grow: it gets its nodes, or is taken back after a while.
        """
        place, reservations = self.nodes.place(), self._reservations()
        held: Counter[PodShape] = Counter()
        stuck: set[PodShape] = set()
        for gang in self.ledger.gangs.values():
            if counts(gang):
                held.update(shapes := reservations.held(gang))
                if is_to_start(gang) and gang.let_go.total():
                    stuck.update(shapes)
        placed = place.place(held.items())
        if keep_free:
            for shape in stuck:
                if sum(placed.get(shape, {}).values()) < held[shape]:
                    place.keep_free(shape)
        return place

    def _held(self, counts: _Counts) -> dict[str, dict[str, Fraction]]:
        """What gangs that count hold, by queue."""
        reservations = self._reservations()
        held: dict[str, dict[str, Fraction]] = {}
        for gang in self.ledger.gangs.values():
            if counts(gang) and (amounts := reservations.amounts(gang)):
                add(held.setdefault(gang.queue, {}), amounts)
        return held

    def _reservations(self) -> Reservations:
        return Reservations(self._jobs, self._priorities, self._overlooked)


def _all(gang: BookedGang) -> bool:
    return True


def _waits_for_pods(gang: BookedGang) -> bool:
    """Whether a gang is admitted, and nothing of it was let go yet."""
    return gang.phase == "Inqueue" and not has_begun(gang)


def _has_begun(gang: BookedGang) -> bool:
    return not _waits_for_pods(gang)


def _kept(pods: list[BookedPod], places: Counter[str]) -> tuple[list[BookedPod], list[BookedPod]]:
    """Pods for which places of their task are kept, and the others."""
    left = Counter(places)
    kept: list[BookedPod] = []
    others: list[BookedPod] = []
    for pod in pods:
        (kept if left[pod.task] > 0 else others).append(pod)
        left[pod.task] -= 1
    return kept, others


def _in_order(pod: BookedPod) -> tuple[int, str]:
    """``worker-9`` comes before ``worker-10``."""
    name = pod.key[1]
    return len(name), name
