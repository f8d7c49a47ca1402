"""What counts of gangs and their pods."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice

import msgspec

from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Key, Object
from vcjob.core.scheduling.amounts import NOTHING, Amounts, add, less

_ZERO = Fraction(0)
FINISHED = ("Succeeded", "Failed")
"""Phases of pods that no longer take room."""


@dataclass
class BookedPod:
    """What counts of a pod. ``told`` is why it could not be bound, as last written on it.

    A gated pod (``spec.schedulingGates``) is not bound and does not count as there, until whoever
    set its gates has removed them. A held one has no gate but the scheduler's own.
    """

    key: Key
    uid: str
    version: int
    task: str
    phase: str
    is_bound: bool
    is_leaving: bool
    is_gated: bool
    requests: Amounts
    is_held: bool = False
    told: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.phase in FINISHED

    @property
    def is_standing(self) -> bool:
        """Whether it has started, and stays."""
        return (self.is_bound or self.is_finished) and not self.is_leaving

    @property
    def is_let_go(self) -> bool:
        """Whether it may be bound, is not, and stays."""
        return not (
            self.is_bound or self.is_finished or self.is_leaving or self.is_gated or self.is_held
        )


class Vacancy(msgspec.Struct, frozen=True):
    """The place of a pod that is to be made anew: its task, and what it requests, if known."""

    task: str
    requests: Amounts = NOTHING


@dataclass
class BookedGang:
    """A gang and its pods; ``group`` is None while only pods of it are known, whose
    ``former_queue`` is then where they take room.

    ``of_task`` counts the pods that are there to stay, by task, ``standing`` those of them that
    have started, and ``let_go`` those that may but have not. ``refused`` are the latter that the
    scheduler found no node for. ``leaving`` counts pods under deletion that still take room, and
    ``vacated`` has, by name, the places of those that took some until they were deleted and have
    not been made anew and let go, or bound where the scheduler binds pods itself. ``bound`` sums
    what unfinished pods request that are bound.
    """

    group: Object | None = None
    former_queue: str = ""
    minimum: Amounts = field(default_factory=lambda: NOTHING)
    pods: dict[str, BookedPod] = field(default_factory=dict)
    unbound: dict[str, BookedPod] = field(default_factory=dict)
    phases: Counter[str] = field(default_factory=Counter)
    of_task: Counter[str] = field(default_factory=Counter)
    standing: Counter[str] = field(default_factory=Counter)
    let_go: Counter[str] = field(default_factory=Counter)
    refused: dict[str, BookedPod] = field(default_factory=dict)
    leaving: Counter[str] = field(default_factory=Counter)
    vacated: dict[str, Vacancy] = field(default_factory=dict)
    bound: dict[str, Fraction] = field(default_factory=dict)

    @property
    def uid(self) -> str:
        """The PodGroup's UID; empty if it is not known."""
        return str(((self.group or {}).get("metadata") or {}).get("uid", ""))

    @property
    def name(self) -> str:
        """The PodGroup's name; empty if it is not known."""
        return str(((self.group or {}).get("metadata") or {}).get("name", ""))

    @property
    def phase(self) -> str:
        """The PodGroup's phase; empty if it has none or is not known."""
        return ((self.group or {}).get("status") or {}).get("phase") or ""

    @property
    def waits(self) -> bool:
        """Whether there is a PodGroup that is not admitted."""
        return self.group is not None and self.phase in ("", "Pending")

    @property
    def least(self) -> int:
        """How many pods must start together."""
        return int(self._spec.get("minMember") or 0)

    @property
    def queue(self) -> str:
        """The name of its queue; without a PodGroup that which its pods came from."""
        return self._spec.get("queue") or (not self.group and self.former_queue) or DEFAULT_QUEUE

    @property
    def asks(self) -> tuple[object, ...]:
        """What room is held for, as the PodGroup says; equal as long as that is the same."""
        names = ("minMember", "minTaskMember", "minResources", "queue")
        return tuple(self._spec.get(name) for name in names)

    @property
    def _spec(self) -> Object:
        return (self.group or {}).get("spec") or {}

    def is_complete(self) -> bool:
        """Whether the pods that must start together are all there.

        A PodGroup may ask for fewer pods than its tasks' minimums sum up to; then any will do.
        """
        if self.of_task.total() < self.least:
            return False
        of_task: Mapping[str, int] = self._spec.get("minTaskMember") or {}
        if sum(of_task.values()) > self.least:
            return True
        return all(self.of_task[task] >= count for task, count in of_task.items())

    def started(self) -> int:
        """How many of its pods are bound or have ended, and stay."""
        return self.standing.total()

    def holds(self) -> Amounts:
        """What it takes of a machine: its minimum from admission until that has started.

        Later that is what is bound, and the places of pods that are made anew. Pods that are bound
        although it waits are of an earlier attempt, or of a PodGroup that somebody deleted.
        """
        if self.waits:
            return self.bound
        if self.phase == "Inqueue":
            names = self.minimum.keys() | self.bound.keys()
            return {
                name: max(self.minimum.get(name, _ZERO), self.bound.get(name, _ZERO))
                for name in names
            }
        places = self._kept_places()
        if not places:
            return self.bound
        total = dict(self.bound)
        for vacancy in places.values():
            add(total, vacancy.requests)
        return total

    def needs(self) -> Amounts:
        """What it needs to be admitted: its minimum without what it has already and keeps."""
        if not self.standing.total():
            return self.minimum
        has: dict[str, Fraction] = {}
        for pod in self.pods.values():
            if pod.is_standing and not pod.is_finished:
                add(has, pod.requests)
        return less(self.minimum, has)

    def provided_for(self) -> set[str]:
        """The UIDs of those of its pods that room is held for and that are not bound yet."""
        if self.phase != "Inqueue":
            names = self._kept_places()
            return {uid for uid, pod in self.unbound.items() if pod.key[1] in names}
        of_task = Counter(self._spec.get("minTaskMember") or {})
        if of_task.total() > self.least:
            of_task.clear()  # any will do
        of_task.subtract(self.standing)
        left = max(self.least - self.started(), (+of_task).total())
        of_minimum: list[str] = []
        others: list[str] = []
        for uid, pod in self.unbound.items():
            (of_minimum if of_task[pod.task] > 0 else others).append(uid)
            of_task[pod.task] -= 1
        return set([*of_minimum, *others][:left])

    def _kept_places(self) -> dict[str, Vacancy]:
        """The places of pods that were deleted, until the minimum is full again."""
        left = self.least - self.started() - self.leaving.total()
        return dict(islice(self.vacated.items(), max(left, 0)))


def version_of(obj: Object) -> int:
    """The resource version, whose order is that of the changes."""
    return int(obj["metadata"]["resourceVersion"])
