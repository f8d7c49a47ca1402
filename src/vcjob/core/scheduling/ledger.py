"""The scheduler's books: gangs and their pods, what they hold and what they request.

Each change of an object is entered in constant time, whatever the number of pods.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from vcjob.api.names import GROUP_NAME, QUEUE_NAME, TASK_SPEC
from vcjob.api.types import Key, Object, key_of
from vcjob.core.scheduling.amounts import NOTHING, Amounts, add
from vcjob.core.scheduling.booked import BookedGang, BookedPod, Vacancy, version_of
from vcjob.core.scheduling.places import Gang
from vcjob.core.scheduling.priorities import priority_of
from vcjob.core.scheduling.requests import amounts_of, pod_requests
from vcjob.core.times import seconds_of

_ALONE = "pod/"
"""How keys begin of pods that name no gang; no name of an object has a slash."""


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
        self._held: dict[str, dict[str, Fraction]] = {}
        self._holds: dict[Key, tuple[str, Amounts]] = {}
        self.room_grew = False

    def enter_group(self, group: Object, *, gone: bool = False) -> None:
        """A PodGroup as it is now, or as it last was."""
        key = key_of(group)
        gang = self.gangs.setdefault(key, BookedGang())
        old = gang.group
        if old is not None and version_of(old) > version_of(group):
            return
        phase, asked, waited = gang.phase, gang.asks, gang.waits
        if old is None or gone or old["metadata"]["uid"] != group["metadata"]["uid"]:
            gang.vacated.clear()
        gang.former_queue = gang.queue if gone else ""
        gang.group = None if gone else group
        gang.minimum = amounts_of((group.get("spec") or {}).get("minResources"))
        self.waiting.pop(key, None)
        if gang.waits:
            self.waiting[key] = None
        self.changed[key] = None
        if gang.unbound:
            self.to_bind[key] = None
        if phase not in ("", "Pending") and (
            (phase == "Inqueue" and gang.phase != phase)
            or gang.phase in ("", "Pending")
            or gang.asks != asked
        ):
            self.more_room()  # it may hold less now
        if waited and gone:
            self.room_grew = True  # nobody waits behind it any more
        self._reckon_held(key)
        self._drop_if_empty(key)

    def group_of(self, key: Key) -> Object | None:
        """The PodGroup of a gang; None if it is not known."""
        gang = self.gangs.get(key)
        return gang.group if gang else None

    def enter_pod(self, pod: Object, *, gone: bool = False) -> None:
        """A pod as it is now, or as it last was."""
        metadata = pod["metadata"]
        group = (metadata.get("annotations") or {}).get(GROUP_NAME) or f"{_ALONE}{metadata['name']}"
        key = (metadata.get("namespace", ""), group)
        gang = self.gangs.setdefault(key, BookedGang())
        if gang.group is None and not gang.former_queue:
            gang.former_queue = (metadata.get("annotations") or {}).get(QUEUE_NAME, "")
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
        if old:
            self._leave_room(gang, old, new)
        if new and not new.is_leaving and not self._waits_for_us(new):
            gang.vacated.pop(new.key[1], None)
        self._reckon_held(key)
        self._drop_if_empty(key)

    def _leave_room(self, gang: BookedGang, old: BookedPod, new: BookedPod | None) -> None:
        """A pod has changed: note the room that it took, or was to take, and does not any more."""
        if _takes_room(old) and not (new and _takes_room(new)):
            if old.requests:
                self.more_room()
            if (new is None or new.is_leaving) and not gang.waits:
                gang.vacated[old.key[1]] = Vacancy(old.task, old.requests)
        elif self._gate and old.is_let_go and not (new and (new.is_let_go or new.is_bound)):
            self.more_room()

    def held_by_queue(self) -> Mapping[str, Amounts]:
        """What gangs hold, by queue; kept up only without a gate."""
        return self._held

    def _reckon_held(self, key: Key) -> None:
        """Enter what a gang holds after it has changed, in place of what it held before."""
        if self._gate:
            return  # what gangs hold on a cluster, reservations tell
        queue, before = self._holds.pop(key, ("", NOTHING))
        if before:
            add(self._held[queue], before, -1)
        gang = self.gangs[key]
        if amounts := gang.holds():
            self._holds[key] = gang.queue, dict(amounts)
            add(self._held.setdefault(gang.queue, {}), amounts)

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
                booked.needs(),
                priority_of(spec.get("priorityClassName"), classes),
                seconds_of(metadata.get("creationTimestamp", "")) or 0.0,
            )
            gangs[gang.uid] = (key, gang)
        return gangs

    def by_urgency(self, keys: Iterable[Key], classes: Mapping[str, Object]) -> list[Key]:
        """Gangs, those of the highest priority first, of equal ones the oldest."""

        def urgency(key: Key) -> tuple[int, float, Key]:
            group = (self.gangs[key].group if key in self.gangs else None) or {}
            name = (group.get("spec") or {}).get("priorityClassName")
            created = (group.get("metadata") or {}).get("creationTimestamp", "")
            return -priority_of(name, classes), seconds_of(created) or 0.0, key

        return sorted(keys, key=urgency)

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
            _task_of(pod),
            status.get("phase") or "Pending",
            is_bound,
            bool(metadata.get("deletionTimestamp")),
            any(gate != self._gate for gate in gates),
            old.requests if old else pod_requests(spec),
            bool(gates) and all(gate == self._gate for gate in gates),
            told,
        )

    def _waits_for_us(self, pod: BookedPod) -> bool:
        """Whether a pod waits for the scheduler: to be let go, or else to be bound."""
        return pod.is_held if self._gate else not pod.is_standing

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
        elif pod.is_leaving and _takes_room(pod):
            gang.leaving[pod.task] += times
        if pod.is_finished or not pod.requests:
            return
        if pod.is_bound:
            add(gang.bound, pod.requests, times)
            add(self.used, pod.requests, times)

    def _drop_if_empty(self, key: Key) -> None:
        gang = self.gangs[key]
        if gang.group is None and not gang.pods:
            del self.gangs[key]
            self.changed.pop(key, None)
            self.to_bind.pop(key, None)


def is_alone(key: Key) -> bool:
    """Whether what is booked under a key is a pod of no gang."""
    return key[1].startswith(_ALONE)


def _takes_room(pod: BookedPod) -> bool:
    return pod.is_bound and not pod.is_finished


def _task_of(pod: Object) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(TASK_SPEC, ""))


def _refusal(status: Object) -> str:
    """What a scheduler says of a pod that it found no node for; empty if it says nothing."""
    for condition in status.get("conditions") or ():
        refused = condition.get("status") == "False" and condition.get("reason") == "Unschedulable"
        if refused and condition.get("type") == "PodScheduled":
            return condition.get("message") or "no reason given"
    return ""
