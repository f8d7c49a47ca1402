"""What a status says of a Job's pods, held against the pods themselves.

Only pods as the store had them are counted, never what the status or the controller says of them.
"""

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from owned import is_leaving, owner_of, slot_of

from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, WatchEvent

COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_TERMINATING = "Terminating"

Numbers = dict[str, int | dict[str, int]]
"""Each counter of a status, and for each task how many of its pods are in which phase."""


class Counted(NamedTuple):
    """A pod as a status counts it; one that is leaving has a phase of its own."""

    job_uid: str
    task: str
    phase: str


class Recount:
    """All pods at any time, and all statuses of Jobs, in the order of their resource versions."""

    def __init__(self) -> None:
        self._pods: dict[str, Counted] = {}
        # Pods that Succeeded and that the test itself then deleted: they still count.
        self._cleaned_up: dict[str, Counted] = {}
        self._deleted_by_test: set[str] = set()
        self._versions = [0]
        self._moments: list[tuple[Counted, ...]] = [()]
        self._statuses: list[tuple[int, str, Object]] = []

    def will_delete(self, name: str) -> None:
        """The test deletes a pod next: if it has Succeeded, it is cleaned up."""
        self._deleted_by_test.add(name)

    def saw_pod(self, event: WatchEvent) -> None:
        """Note how a pod has changed."""
        metadata = event.object["metadata"]
        name = metadata["name"]
        self._versions.append(int(metadata["resourceVersion"]))
        if event.type == EventType.DELETED:
            gone = self._pods.pop(name)
            if name in self._deleted_by_test and event.object["status"]["phase"] == "Succeeded":
                self._cleaned_up[name] = gone._replace(phase="Succeeded")
        else:
            self._pods[name] = counted_as(event.object)
            self._cleaned_up.pop(name, None)
            if not is_leaving(event.object):
                self._deleted_by_test.discard(name)
        self._moments.append((*self._pods.values(), *self._cleaned_up.values()))

    def saw_job(self, event: WatchEvent) -> None:
        """Note a Job's status."""
        if event.type != EventType.DELETED and (status := event.object.get("status")):
            metadata = event.object["metadata"]
            version = int(metadata["resourceVersion"])
            self._statuses.append((version, metadata["uid"], status))

    def never_true(self) -> Iterator[str]:
        """Statuses that tell of pods as they never were since the status before.

        A controller sees pods a little late, but one change after the other: each status has to be
        true of some moment before it was written, and no status of an earlier one than the last.
        """
        moment, last_uid = 0, ""
        for version, uid, status in self._statuses:
            if uid != last_uid:
                moment, last_uid = 0, uid
            end = bisect.bisect_left(self._versions, version)
            shown = shown_by(status)
            possible = range(moment, end)
            true = next(
                (at for at in possible if numbers_of(self._moments[at], uid) == shown), None
            )
            if true is None:
                there = numbers_of(self._moments[end - 1], uid)
                yield f"{shown} at version {version}, of {there}"
            else:
                moment = true

    def now(self) -> tuple[Numbers, Numbers]:
        """What the latest status says of pods, and what there is now."""
        _, uid, status = self._statuses[-1]
        return shown_by(status), numbers_of(self._moments[-1], uid)


def counted_as(pod: Object) -> Counted:
    """How a pod of a Job is counted."""
    phase = _TERMINATING if is_leaving(pod) else pod["status"]["phase"]
    return Counted(owner_of(pod), slot_of(pod)[0], phase)


def shown_by(status: Object) -> Numbers:
    """The numbers of pods that a status tells."""
    by_task = {
        task: dict(sorted(counts["phase"].items()))
        for task, counts in status.get("taskStatusCount", {}).items()
    }
    return {**{name: status.get(name, 0) for name in COUNTERS}, **by_task}


def numbers_of(pods: Iterable[Counted], job_uid: str) -> Numbers:
    """The numbers that the status of a Job with these pods has to tell."""
    own = [pod for pod in pods if pod.job_uid == job_uid]
    phases = Counter(pod.phase.lower() for pod in own)
    by_task: dict[str, Counter[str]] = {}
    for pod in own:
        if pod.phase != _TERMINATING:
            by_task.setdefault(pod.task, Counter())[pod.phase] += 1
    counted: Numbers = {name: phases[name] for name in COUNTERS}
    return counted | {task: dict(sorted(counts.items())) for task, counts in by_task.items()}


def without_successes(numbers: Numbers) -> Numbers:
    """The same but for pods that have succeeded."""
    left: Numbers = {}
    for name, number in numbers.items():
        if isinstance(number, int):
            left[name] = 0 if name == "succeeded" else number
        elif others := {phase: n for phase, n in number.items() if phase != "Succeeded"}:
            left[name] = others
    return left
