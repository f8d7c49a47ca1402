"""The scheduler's books: gangs and their pods, what they hold and what they request.

Each change of an object is entered in constant time, whatever the number of pods.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from vcjob.api.names import GROUP_NAME, TASK_SPEC
from vcjob.api.types import Object
from vcjob.core.scheduling.amounts import NOTHING, Amounts, add
from vcjob.core.scheduling.gangs import DEFAULT_QUEUE
from vcjob.core.scheduling.places import Gang
from vcjob.core.scheduling.priorities import priority_of
from vcjob.core.scheduling.requests import amounts_of, pod_requests
from vcjob.core.times import seconds_of

Key = tuple[str, str]
"""Namespace and name."""

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


@dataclass
class BookedGang:
    """A gang and its pods; ``group`` is None while only pods of it are known.

    ``of_task`` counts the pods that are there to stay, by task, ``standing`` those of them that
    have started, and ``let_go`` those that may but have not. ``refused`` are the latter that the
    scheduler found no node for. ``requested`` sums what its unfinished pods request, ``bound`` that
    of the bound ones among them.
    """

    group: Object | None = None
    minimum: Amounts = field(default_factory=lambda: NOTHING)
    pods: dict[str, BookedPod] = field(default_factory=dict)
    unbound: dict[str, BookedPod] = field(default_factory=dict)
    phases: Counter[str] = field(default_factory=Counter)
    of_task: Counter[str] = field(default_factory=Counter)
    standing: Counter[str] = field(default_factory=Counter)
    let_go: Counter[str] = field(default_factory=Counter)
    refused: dict[str, BookedPod] = field(default_factory=dict)
    requested: dict[str, Fraction] = field(default_factory=dict)
    bound: dict[str, Fraction] = field(default_factory=dict)

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
        """The name of its queue."""
        return self._spec.get("queue") or DEFAULT_QUEUE

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
        """What it takes of the machine: at least its minimum from admission until it starts."""
        if self.waits:
            return NOTHING
        if self.phase != "Inqueue":
            return self.bound
        names = self.minimum.keys() | self.requested.keys()
        return {
            name: max(self.minimum.get(name, _ZERO), self.requested.get(name, _ZERO))
            for name in names
        }


class Ledger:
    """All gangs. A pod that belongs to none is booked alone, under its own name.

    ``changed`` are gangs whose phase or counts may have to be written, ``to_bind`` those with pods
    that may now be bound, until the scheduler takes them. ``room_grew`` says that a gang that
    waits may fit by now.

    Args:
        gate: the scheduling gate by which the scheduler holds pods until they may start; without
            one, pods wait for it to bind them.
    """

    def __init__(self, gate: str = "") -> None:
        self._gate = gate
        self.gangs: dict[Key, BookedGang] = {}
        self.waiting: dict[Key, None] = {}
        self.changed: dict[Key, None] = {}
        self.to_bind: dict[Key, None] = {}
        self.used: dict[str, Fraction] = {}
        self.room_grew = False

    def enter_group(self, group: Object, *, gone: bool = False) -> None:
        """A PodGroup as it is now, or as it last was."""
        key = key_of(group)
        gang = self.gangs.setdefault(key, BookedGang())
        if gang.group is not None and version_of(gang.group) > version_of(group):
            return
        held = gang.phase
        gang.group = None if gone else group
        gang.minimum = amounts_of((group.get("spec") or {}).get("minResources"))
        self.waiting.pop(key, None)
        if gang.waits:
            self.waiting[key] = None
        self.changed[key] = None
        if gang.unbound:
            self.to_bind[key] = None
        if held == "Inqueue" and gang.phase != held:
            self.more_room()
        self._drop_if_empty(key)

    def enter_pod(self, pod: Object, *, gone: bool = False) -> None:
        """A pod as it is now, or as it last was."""
        metadata = pod["metadata"]
        group = (metadata.get("annotations") or {}).get(GROUP_NAME) or f"pod/{metadata['name']}"
        key = (metadata.get("namespace", ""), group)
        gang = self.gangs.setdefault(key, BookedGang())
        old = gang.pods.get(metadata["uid"])
        if old and old.version > version_of(pod):
            return
        if old:
            self._take_out(gang, old)
        new = None if gone else self._booked(pod, old)
        if new:
            self._put_in(gang, new)
            if not new.is_bound:
                self.to_bind[key] = None
        self.changed[key] = None
        if old and old.requests and _takes_room(old) and not (new and _takes_room(new)):
            self.more_room()
        self._drop_if_empty(key)

    def held_by_queue(self) -> dict[str, dict[str, Fraction]]:
        """What admitted gangs hold, by queue."""
        held: dict[str, dict[str, Fraction]] = {}
        for gang in self.gangs.values():
            if amounts := gang.holds():
                add(held.setdefault(gang.queue, {}), amounts)
        return held

    def waiting_gangs(self, classes: Mapping[str, Object]) -> dict[str, tuple[Key, Gang]]:
        """The gangs that wait for admission, by the UID of their PodGroup."""
        gangs = {}
        for key in self.waiting:
            booked = self.gangs[key]
            assert booked.group is not None  # only PodGroups wait
            metadata = booked.group["metadata"]
            spec = booked.group.get("spec") or {}
            gang = Gang(
                metadata["uid"],
                metadata["name"],
                booked.queue,
                booked.minimum,
                priority_of(spec.get("priorityClassName"), classes),
                seconds_of(metadata.get("creationTimestamp", "")) or 0.0,
            )
            gangs[gang.uid] = (key, gang)
        return gangs

    def more_room(self) -> None:
        """What waits for a place is to be tried again."""
        self.room_grew = True
        self.to_bind.update((key, None) for key, gang in self.gangs.items() if gang.unbound)

    def _booked(self, pod: Object, old: BookedPod | None) -> BookedPod:
        metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        is_bound = bool(spec.get("nodeName"))
        gates = () if is_bound else [one.get("name") for one in spec.get("schedulingGates") or ()]
        told = old.told if old else ""
        if self._gate:
            told = "" if is_bound else _refusal(status)
        return BookedPod(
            key_of(pod),
            metadata["uid"],
            version_of(pod),
            (metadata.get("annotations") or {}).get(TASK_SPEC, ""),
            status.get("phase") or "Pending",
            is_bound,
            bool(metadata.get("deletionTimestamp")),
            any(gate != self._gate for gate in gates),
            old.requests if old else pod_requests(spec),
            bool(gates) and all(gate == self._gate for gate in gates),
            told,
        )

    def _put_in(self, gang: BookedGang, pod: BookedPod) -> None:
        gang.pods[pod.uid] = pod
        if not (pod.is_bound or pod.is_leaving or pod.is_gated):
            gang.unbound[pod.uid] = pod
        if pod.told and pod.is_let_go and self._gate:
            gang.refused[pod.uid] = pod
        self._count(gang, pod, 1)

    def _take_out(self, gang: BookedGang, pod: BookedPod) -> None:
        del gang.pods[pod.uid]
        gang.unbound.pop(pod.uid, None)
        gang.refused.pop(pod.uid, None)
        self._count(gang, pod, -1)

    def _count(self, gang: BookedGang, pod: BookedPod, times: int) -> None:
        if not pod.is_leaving:
            gang.phases[pod.phase] += times
            if not pod.is_gated:
                gang.of_task[pod.task] += times
        if pod.is_standing:
            gang.standing[pod.task] += times
        elif pod.is_let_go:
            gang.let_go[pod.task] += times
        if pod.is_finished or not pod.requests:
            return
        add(gang.requested, pod.requests, times)
        if pod.is_bound:
            add(gang.bound, pod.requests, times)
            add(self.used, pod.requests, times)

    def _drop_if_empty(self, key: Key) -> None:
        gang = self.gangs[key]
        if gang.group is None and not gang.pods:
            del self.gangs[key]
            self.changed.pop(key, None)
            self.to_bind.pop(key, None)


def key_of(obj: Object) -> Key:
    """Namespace and name of an object."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def version_of(obj: Object) -> int:
    """The resource version, whose order is that of the changes."""
    return int(obj["metadata"]["resourceVersion"])


def _takes_room(pod: BookedPod) -> bool:
    return pod.is_bound and not pod.is_finished


def _refusal(status: Object) -> str:
    """What a scheduler says of a pod that it found no node for; empty if it says nothing."""
    for condition in status.get("conditions") or ():
        refused = condition.get("status") == "False" and condition.get("reason") == "Unschedulable"
        if refused and condition.get("type") == "PodScheduled":
            return condition.get("message") or "no reason given"
    return ""
