"""What a status says of a Job's pods, held against the pods themselves.

Only pods as the store had them are counted, never what the status or the controller says of them.
"""

import bisect
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from vcjob.api.names import TASK_SPEC
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, WatchEvent

COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_TERMINATING = "Terminating"

Numbers = dict[str, int | dict[str, int]]
"""Each counter of a status, and for each task how many of its pods are in which phase."""


class _Pod(NamedTuple):
    job_uid: str
    task: str
    phase: str


class Recount:
    """All pods at any time, and all statuses of Jobs, in the order of their resource versions."""

    def __init__(self) -> None:
        self._pods: dict[str, _Pod] = {}
        # Pods that Succeeded and that the test itself then deleted: they still count.
        self._cleaned_up: dict[str, _Pod] = {}
        self._deleted_by_test: set[str] = set()
        self._versions = [0]
        self._moments: list[tuple[_Pod, ...]] = [()]
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
            leaves = "deletionTimestamp" in metadata
            phase = _TERMINATING if leaves else event.object["status"]["phase"]
            owner = metadata["ownerReferences"][0]["uid"]
            self._pods[name] = _Pod(owner, metadata["annotations"][TASK_SPEC], phase)
            self._cleaned_up.pop(name, None)
            if not leaves:
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
            shown = _shown(status)
            possible = range(moment, end)
            true = next((at for at in possible if _counted(self._moments[at], uid) == shown), None)
            if true is None:
                yield f"{shown} at version {version}, of {_counted(self._moments[end - 1], uid)}"
            else:
                moment = true

    def now(self) -> tuple[Numbers, Numbers]:
        """What the latest status says of pods, and what there is now."""
        _, uid, status = self._statuses[-1]
        return _shown(status), _counted(self._moments[-1], uid)


def _shown(status: Object) -> Numbers:
    by_task = {
        task: dict(sorted(counts["phase"].items()))
        for task, counts in status.get("taskStatusCount", {}).items()
    }
    return {**{name: status.get(name, 0) for name in COUNTERS}, **by_task}


def _counted(pods: tuple[_Pod, ...], job_uid: str) -> Numbers:
    own = [pod for pod in pods if pod.job_uid == job_uid]
    phases = Counter(pod.phase.lower() for pod in own)
    by_task: dict[str, Counter[str]] = {}
    for pod in own:
        if pod.phase != _TERMINATING:
            by_task.setdefault(pod.task, Counter())[pod.phase] += 1
    counted: Numbers = {name: phases[name] for name in COUNTERS}
    return counted | {task: dict(sorted(counts.items())) for task, counts in by_task.items()}
