"""What an object says of the Job that it belongs to, and what a Job says of its pods."""

from typing import Any

from vcjob.api.names import JOB_RETRY_COUNT, JOB_VERSION, OUT_OF_SYNC, TASK_INDEX, TASK_SPEC
from vcjob.api.types import Job, Object
from vcjob.core.indices import IndexSet
from vcjob.core.state import state_of

FINAL = ("Completed", "Failed", "Terminated")
ACTIVE = ("Pending", "Running", "Restarting")
ENDED = ("Succeeded", "Failed")

Slot = tuple[str, int]


def owner_of(obj: Object) -> str:
    """The UID of an object's owner, empty if it has none."""
    owners: Any = obj["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))


def slot_of(pod: Object) -> Slot:
    """A pod's place in its Job."""
    annotations = pod["metadata"]["annotations"]
    return annotations[TASK_SPEC], int(annotations[TASK_INDEX])


def version_of(pod: Object) -> int:
    """The version of the Job that a pod was made for."""
    return _number(pod, JOB_VERSION)


def retry_of(pod: Object) -> int:
    """The retry that a pod was made for."""
    return _number(pod, JOB_RETRY_COUNT)


def is_leaving(obj: Object) -> bool:
    """Whether an object's deletion was asked for."""
    return "deletionTimestamp" in obj["metadata"]


def is_marked(pod: Object) -> bool:
    """Whether a pod (or a patch of one) tells that a controller deletes it."""
    return OUT_OF_SYNC in (pod.get("metadata", {}).get("annotations") or {})


def replicas_of(job: Object) -> dict[str, int]:
    """How many pods each task of a Job wants."""
    return {task["name"]: task["replicas"] for task in job["spec"]["tasks"]}


def has_to_go(pod: Object, job: Object, *, ended: bool) -> bool:
    """Whether the recorded status says that this pod of the Job has to go (docs/lifecycle.md)."""
    state = state_of(Job.of(job))
    (task, index), phase = slot_of(pod), job["status"]["state"]["phase"]
    if index >= replicas_of(job).get(task, 0):
        return True
    if version_of(pod) < job["status"].get("version", 0):
        return not (state.keep and ended)
    targeted = any(
        target.task == task
        and index in IndexSet.parse(target.indices)
        and retry_of(pod) < target.retry
        for target in state.targets
    )
    return targeted or (phase not in ACTIVE and not ended)


def _number(pod: Object, annotation: str) -> int:
    return int(pod["metadata"]["annotations"].get(annotation, 0))
