"""Which gangs may start, and in which order: pure decisions, on one machine as in a cluster.

A gang (PodGroup) is admitted whole: when the place where it is to run and its queue have room for
its minimum of pods. Nobody is evicted to make room.

Source: Volcano's documentation, "PodGroup" and "Queue"; job-api.md sections 6 and 7.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import msgspec

from vcjob.api.queues import DEFAULT_QUEUE, ROOT
from vcjob.core.scheduling.amounts import Amounts, add, beyond, less, listed
from vcjob.core.scheduling.places import Gang, Place, Wait, asked


class QueueLimits(msgspec.Struct, frozen=True):
    """What a Queue object says about admission.

    ``capability`` bounds what all gangs in the queue, and in those below it, request together.
    With ``strict_order`` (``dequeueStrategy: fifo``) nothing overtakes a gang that has to wait.
    """

    name: str
    parent: str = ROOT
    capability: Amounts = {}
    priority: int = 0
    weight: int = 1
    is_open: bool = True
    strict_order: bool = False


def admissions(
    waiting: Iterable[Gang],
    queues: Mapping[str, QueueLimits],
    place: Place,
    held: Mapping[str, Amounts],
) -> Iterator[tuple[Gang, Wait | None]]:
    """Every waiting gang with its answer: None if it is admitted now, else why it waits.

    ``place`` is where they are to run; what is admitted is taken from it. ``held`` is what admitted
    gangs of each queue hold. Queues take turns: the one of the highest priority first, of equal
    ones the one that holds least for its weight; in a queue, gangs of the highest priority come
    first, then the oldest.
    """
    turns = _Turns(queues, place, held)
    lines: dict[str, list[Gang]] = {}
    for gang in sorted(waiting, key=lambda one: (-one.priority, one.created, one.name)):
        lines.setdefault(gang.queue, []).append(gang)
    for line in lines.values():
        line.reverse()  # the next one is taken from the end
    held_up: dict[str, Gang] = {}
    while lines:
        name = min(lines, key=turns.turn)
        gang = lines[name].pop()
        if not lines[name]:
            del lines[name]
        wait = turns.obstacle(gang)
        first = held_up.get(name)
        if wait is None and first is not None:
            wait = Wait(
                "BehindAnother",
                f'{gang.name} waits behind {first.name} in queue "{name}", which keeps its order',
            )
        if wait is None:
            turns.take(gang)
        elif name in queues and queues[name].strict_order:
            held_up.setdefault(name, gang)
        yield gang, wait


def fitting_no_more(
    admitted: Iterable[Gang],
    queues: Mapping[str, QueueLimits],
    place: Place,
    held: Mapping[str, Amounts],
) -> Iterator[tuple[Gang, Wait]]:
    """Those of the gangs that could not be admitted now, and why; the first ones go first.

    ``place`` and ``held`` are without what they hold themselves. That a queue was closed meanwhile
    does not count: a closed queue lets those go on that it has admitted.
    """
    turns = _Turns(queues, place, held)
    for gang in admitted:
        if wait := turns.obstacle(gang, admitted=True):
            yield gang, wait
        else:
            turns.take(gang)


class QueueRoom:
    """What is left of each queue: its capability bounds what it and those below it hold."""

    def __init__(self, queues: Mapping[str, QueueLimits], held: Mapping[str, Amounts]) -> None:
        self._queues = queues
        self._held: dict[str, dict[str, Fraction]] = {}
        for queue, amounts in held.items():
            self.hold(queue, amounts)

    def held(self, queue: str) -> Amounts:
        """What a queue and those below it hold."""
        return self._held.get(queue, {})

    def left(self, queue: str) -> Amounts:
        """What is left of a queue's own capability."""
        return less(self._queues[queue].capability, self.held(queue))

    def hold(self, queue: str, amounts: Amounts, times: int = 1) -> None:
        """So much is held in a queue from now on."""
        for one in ancestry(queue, self._queues):
            add(self._held.setdefault(one, {}), amounts, times)

    def most(self, queue: str, amounts: Amounts, count: int) -> int:
        """How many times amounts can be held, up to ``count``; never in a queue not there."""
        if queue not in self._queues:
            return 0
        for one in ancestry(queue, self._queues):
            left = self.left(one)
            for name, amount in amounts.items():
                if amount > 0 and name in left:
                    count = min(count, int(left[name] / amount))
        return count


class _Turns:
    """What is left of the place and of each queue while gangs are admitted one by one."""

    def __init__(
        self, queues: Mapping[str, QueueLimits], place: Place, held: Mapping[str, Amounts]
    ) -> None:
        self._queues = queues
        self._place = place
        self._capacity = place.capacity
        self._room = QueueRoom(queues, held)

    def turn(self, queue: str) -> tuple[int, Fraction, str]:
        """The queue with the smallest value is next."""
        limits = self._queues.get(queue) or QueueLimits(queue)
        held = self._room.held(queue)
        shares = [held[name] / total for name, total in self._capacity.items()
                  if total and name in held]  # fmt: skip
        return -limits.priority, max(shares, default=Fraction(0)) / max(limits.weight, 1), queue

    def take(self, gang: Gang) -> None:
        self._room.hold(gang.queue, gang.needs)
        self._place.take(gang)

    def obstacle(self, gang: Gang, *, admitted: bool = False) -> Wait | None:
        limits = self._queues.get(gang.queue)
        if limits is None:
            hint = f'create it, or use queue "{DEFAULT_QUEUE}"'
            return Wait("QueueNotFound", f'there is no queue "{gang.queue}": {hint}')
        above = ancestry(gang.queue, self._queues)
        for queue in above:
            if not self._queues[queue].is_open and not admitted:
                return Wait("QueueClosed", f'queue "{queue}" is closed: it admits nothing')
        for queue in above:
            capability = self._queues[queue].capability
            if short := beyond(gang.needs, capability, missing_is_none=False):
                return Wait("ExceedsQueue", f'{asked(gang, short)}; queue "{queue}" never has '
                            f"more than {listed(capability, short)}")  # fmt: skip
        if wait := self._place.never(gang):
            return wait
        for queue in above:
            left = self._room.left(queue)
            if short := beyond(gang.needs, left, missing_is_none=False):
                return Wait("NotEnoughResources", f'{asked(gang, short)}; queue "{queue}" has '
                            f"{listed(left, short)} left")  # fmt: skip
        return gang.put_off or self._place.obstacle(gang)


def ancestry(queue: str, queues: Mapping[str, QueueLimits]) -> list[str]:
    """A queue and those above it that exist, from the inside out; a cycle ends where it closes."""
    found: list[str] = []
    while queue in queues and queue not in found:
        found.append(queue)
        queue = queues[queue].parent
    return found
