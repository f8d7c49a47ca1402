"""Which pods a gang will have, as its Job tells before there are any."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil

import msgspec

from vcjob.api.kinds import JOB
from vcjob.api.names import pod_name
from vcjob.api.types import Job, Task
from vcjob.core.actions import ACTIVE
from vcjob.core.indices import IndexSet
from vcjob.core.podgroup import minimum_pods
from vcjob.core.pods import NAMELESS_TASK
from vcjob.core.scheduling.amounts import Amounts
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.shapes import PODS, PodShape, billionths, pod_shape
from vcjob.core.state import state_of


class _JobPods(msgspec.Struct, frozen=True):
    """The tasks of a Job without their templates, and the shape of each one's pods."""

    name: str
    tasks: tuple[Task, ...]
    shapes: dict[str, PodShape]


class JobPods:
    """The pods of all Jobs, by task. Of a gang without a Job its PodGroup tells what it can."""

    def __init__(self) -> None:
        self._jobs: dict[str, _JobPods] = {}
        self._wanted: dict[str, dict[str, IndexSet]] = {}

    def enter_job(self, job: Job, *, gone: bool = False) -> bool:
        """A Job as it is now, or as it last was; returns whether its pods are others now."""
        uid = job.metadata.uid
        if gone:
            self._jobs.pop(uid, None)
            self._wanted.pop(uid, None)
            return False
        shapes, tasks = {}, []
        for task in job.spec.tasks:
            spec = task.template.get("spec") or {}
            shapes[task.name or NAMELESS_TASK] = pod_shape(spec)
            kept = {"spec": {"priorityClassName": spec.get("priorityClassName")}}
            tasks.append(msgspec.structs.replace(task, template=kept))
        self._wanted[uid] = _wanted(job)
        known = _JobPods(job.metadata.name, tuple(tasks), shapes)
        if known == self._jobs.get(uid):
            return False
        self._jobs[uid] = known
        return True

    def is_known(self, gang: BookedGang) -> bool:
        """Whether the Job of a gang is known, if it has one."""
        uid = job_uid(gang)
        return not uid or uid in self._jobs

    def minimum(self, gang: BookedGang, priorities: Mapping[str, int]) -> dict[str, int]:
        """How many pods of which task make up a gang's minimum.

        ``priorities`` are values of PriorityClasses by name.
        """
        assert gang.group is not None
        spec = gang.group.get("spec") or {}
        counted: dict[str, int] = spec.get("minTaskMember") or {}
        job = self._job(gang)
        if job is None:
            return counted if sum(counted.values()) == gang.least else {"": gang.least}
        tasks = [task for task in job.tasks if task.name in counted]
        made = minimum_pods(tasks, gang.least, priorities)
        return {name or NAMELESS_TASK: count for name, count in made.items()}

    def wanted(self, gang: BookedGang) -> Iterator[tuple[str, str]]:
        """Name and task of each pod that a gang's Job would make if it were missing.

        That is as the Job was when it was last entered: none where it made none, or is not known.
        """
        job = self._job(gang)
        for task, indices in self._wanted.get(job_uid(gang), {}).items():
            assert job is not None
            for index in indices:
                yield pod_name(job.name, task, index), task or NAMELESS_TASK

    def shape(self, gang: BookedGang, task: str) -> PodShape:
        """The shape of a task's pods; without a Job, an equal part of what the gang requests."""
        job = self._job(gang)
        if job is not None and task in job.shapes:
            return job.shapes[task]
        part = {
            name: ceil(billionths(amount) / max(gang.least, 1))
            for name, amount in gang.minimum.items()
        }
        part[PODS] = billionths(Fraction(1))
        return PodShape(
            tuple(sorted((name, amount) for name, amount in part.items() if amount > 0))
        )

    def sizes(
        self, gang: BookedGang, tasks: Iterable[str], capacity: Amounts
    ) -> dict[str, Fraction]:
        """How large a pod of each task is: the largest part of the capacity that it asks for."""
        sizes = {}
        for task in tasks:
            requests = self.shape(gang, task).shown()
            shares = [requests[name] / capacity[name] for name in requests if capacity.get(name)]
            sizes[task] = max(shares, default=Fraction(0))
        return sizes

    def _job(self, gang: BookedGang) -> _JobPods | None:
        return self._jobs.get(job_uid(gang))


def _wanted(job: Job) -> dict[str, IndexSet]:
    """By task, the indices of the pods that are to be there."""
    if job.status.state.phase not in ACTIVE:
        return {}
    state = state_of(job)
    return {
        task.name: IndexSet.below(task.replicas) - state.done_of(task.name)
        for task in job.spec.tasks
    }


def job_uid(gang: BookedGang) -> str:
    """UID of the Job that a gang belongs to; empty if to none."""
    for owner in ((gang.group or {}).get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("kind") == JOB.kind and owner.get("apiVersion") == JOB.api_version:
            return str(owner.get("uid", ""))
    return ""
