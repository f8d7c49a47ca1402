"""Which gangs may start on this machine, and which pods: pure decisions of the local scheduler.

A gang (PodGroup) is admitted whole: when the machine and its queue have room for all that its
minimum of pods requests. Requests are all that counts: a pod that requests nothing always fits, so
that a laptop can run what was written for a cluster. Nobody is evicted to make room.

Source: Volcano's documentation, "PodGroup" and "Queue"; job-api.md sections 6 and 7.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from vcjob.api.quantity import Notation, format_quantity

Amounts = Mapping[str, Fraction]
"""Amounts of resources by name, such as ``cpu``, ``memory``, ``nvidia.com/gpu``."""

# A machine without extended resources has none of them; of these it has no figure.
_NOT_COUNTED = ("ephemeral-storage", "hugepages-")
_BINARY = ("memory",)

ROOT = "root"
DEFAULT_QUEUE = "default"


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


class Gang(msgspec.Struct, frozen=True):
    """A PodGroup that waits for admission. ``created`` is in seconds since 1970."""

    uid: str
    name: str
    queue: str
    needs: Amounts
    priority: int = 0
    created: float = 0.0


class Wait(msgspec.Struct, frozen=True):
    """Why a gang cannot start: a reason in one word, and a sentence with the numbers."""

    reason: str
    message: str


def admissions(
    waiting: Iterable[Gang],
    queues: Mapping[str, QueueLimits],
    capacity: Amounts,
    used: Mapping[str, Amounts],
) -> Iterator[tuple[Gang, Wait | None]]:
    """Every waiting gang with its answer: None if it is admitted now, else why it waits.

    ``used`` is what admitted gangs of each queue hold. Queues take turns: the one of the highest
    priority first, of equal ones the one that holds least for its weight; in a queue, gangs of the
    highest priority come first, then the oldest.
    """
    room = _Room(queues, capacity, used)
    lines: dict[str, list[Gang]] = {}
    for gang in sorted(waiting, key=lambda one: (-one.priority, one.created, one.name)):
        lines.setdefault(gang.queue, []).append(gang)
    held_up: dict[str, Gang] = {}
    while lines:
        name = min(lines, key=room.turn)
        gang = lines[name].pop(0)
        if not lines[name]:
            del lines[name]
        wait = room.obstacle(gang)
        first = held_up.get(name)
        if wait is None and first is not None:
            wait = Wait(
                "BehindAnother",
                f'{gang.name} waits behind {first.name} in queue "{name}", which keeps its order',
            )
        if wait is None:
            room.take(gang)
        elif name in queues and queues[name].strict_order:
            held_up.setdefault(name, gang)
        yield gang, wait


class _Room:
    """What is left of the machine and of each queue while gangs are admitted one by one."""

    def __init__(
        self, queues: Mapping[str, QueueLimits], capacity: Amounts, used: Mapping[str, Amounts]
    ) -> None:
        self._queues = queues
        self._capacity = capacity
        self._held: dict[str, dict[str, Fraction]] = {}
        self._used: dict[str, Fraction] = {}
        for queue, amounts in used.items():
            self._hold(queue, amounts)

    def turn(self, queue: str) -> tuple[int, Fraction, str]:
        """The queue with the smallest value is next."""
        limits = self._queues.get(queue) or QueueLimits(queue)
        held = self._held.get(queue, {})
        shares = [held[name] / total for name, total in self._capacity.items()
                  if total and name in held]  # fmt: skip
        return -limits.priority, max(shares, default=Fraction(0)) / max(limits.weight, 1), queue

    def take(self, gang: Gang) -> None:
        self._hold(gang.queue, gang.needs)

    def obstacle(self, gang: Gang) -> Wait | None:
        limits = self._queues.get(gang.queue)
        if limits is None:
            hint = f'create it, or use queue "{DEFAULT_QUEUE}"'
            return Wait("QueueNotFound", f'there is no queue "{gang.queue}": {hint}')
        for queue in ancestry(gang.queue, self._queues):
            if not self._queues[queue].is_open:
                return Wait("QueueClosed", f'queue "{queue}" is closed: it admits nothing')
        for queue in ancestry(gang.queue, self._queues):
            capability = self._queues[queue].capability
            if short := _beyond(gang.needs, capability, missing_is_none=False):
                return Wait("ExceedsQueue", f'{_asked(gang, short)}; queue "{queue}" never has '
                            f"more than {_listed(capability, short)}")  # fmt: skip
        if short := _beyond(gang.needs, self._capacity):
            return Wait("ExceedsMachine", f"{_asked(gang, short)}; this machine has "
                        f"{_listed(self._capacity, short)}")  # fmt: skip
        for queue in ancestry(gang.queue, self._queues):
            left = _less(self._queues[queue].capability, self._held.get(queue, {}))
            if short := _beyond(gang.needs, left, missing_is_none=False):
                return Wait("NotEnoughResources", f'{_asked(gang, short)}; queue "{queue}" has '
                            f"{_listed(left, short)} left")  # fmt: skip
        left = _less(self._capacity, self._used)
        if short := _beyond(gang.needs, left):
            return Wait("NotEnoughResources", f"{_asked(gang, short)}; this machine has "
                        f"{_listed(left, short)} left")  # fmt: skip
        return None

    def _hold(self, queue: str, amounts: Amounts) -> None:
        _add(self._used, amounts)
        for one in ancestry(queue, self._queues):
            _add(self._held.setdefault(one, {}), amounts)


def ancestry(queue: str, queues: Mapping[str, QueueLimits]) -> list[str]:
    """A queue and those above it that exist, from the inside out; a cycle ends where it closes."""
    found: list[str] = []
    while queue in queues and queue not in found:
        found.append(queue)
        queue = queues[queue].parent
    return found


def shortage(needs: Amounts, capacity: Amounts, used: Amounts) -> str:
    """What is missing for one pod of no waiting gang, as a sentence; empty if it fits."""
    if short := _beyond(needs, capacity):
        return f"it needs {_listed(needs, short)}; this machine has {_listed(capacity, short)}"
    left = _less(capacity, used)
    if short := _beyond(needs, left):
        return f"it needs {_listed(needs, short)}; this machine has {_listed(left, short)} left"
    return ""


def _beyond(needs: Amounts, limit: Amounts, missing_is_none: bool = True) -> list[str]:
    """Resources of which more is needed than ``limit`` has.

    Of a resource that is not in ``limit`` there is none if ``missing_is_none``, else any amount.
    """
    return [
        name
        for name, amount in sorted(needs.items())
        if amount > 0
        and (name in limit or (missing_is_none and not name.startswith(_NOT_COUNTED)))
        and amount > limit.get(name, 0)
    ]


def _less(amounts: Amounts, taken: Amounts) -> dict[str, Fraction]:
    return {name: max(amount - taken.get(name, 0), Fraction(0)) for name, amount in amounts.items()}


def _add(total: dict[str, Fraction], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _asked(gang: Gang, resources: Sequence[str]) -> str:
    return f"{gang.name} needs {_listed(gang.needs, resources)} to start"


def _listed(amounts: Amounts, resources: Sequence[str]) -> str:
    return ", ".join(f"{name} {_shown(name, amounts.get(name, Fraction(0)))}" for name in resources)


def _shown(name: str, amount: Fraction) -> str:
    return format_quantity(amount, Notation.BINARY if name in _BINARY else Notation.DECIMAL)
