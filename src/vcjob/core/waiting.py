"""Order of start (``dependsOn``) and the gang's minimum. Source: lifecycle.md section 6."""

from vcjob.api.types import Job
from vcjob.core.draft import Draft
from vcjob.core.facts import PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.podgroup import task_minimum


def waiting_tasks(draft: Draft) -> frozenset[str]:
    """Tasks whose turn has not come: their dependencies are not ready and they have no pods yet.

    Once begun, a task is not held back again if a dependency fails later.
    """
    names = {task.name for task in draft.job.spec.tasks}
    waiting = set()
    for task in draft.job.spec.tasks:
        if not task.depends_on or _has_begun(draft, task.name):
            continue
        wanted = [name for name in task.depends_on.name if name in names]
        ready = [_is_ready(draft, name) for name in wanted]
        one_is_enough = task.depends_on.iteration == "any" and len(wanted) > 1
        if not (any(ready) if one_is_enough else all(ready)):
            waiting.add(task.name)
    return frozenset(waiting)


def effective_minimum(job: Job, waiting: frozenset[str]) -> int:
    """The gang's minimum without tasks that wait for their turn (docs/compatibility.md row 12)."""
    left_out = sum(task_minimum(task) for task in job.spec.tasks if task.name in waiting)
    return max(job.spec.min_available - left_out, 0)


def _has_begun(draft: Draft, name: str) -> bool:
    pods = draft.observed.task(name)
    return bool(
        pods.slots - draft.condemned(name, pods)
        | draft.alive.get(name, NO_INDICES)
        | draft.done.get(name, NO_INDICES)
    )


def readiness(draft: Draft, waiting: frozenset[str]) -> str:
    """How many pods of the tasks that others wait for are ready, one clause for each such task."""
    tasks = draft.job.spec.tasks
    asked = {
        name
        for task in tasks
        if task.name in waiting and task.depends_on
        for name in task.depends_on.name
    }
    said = [
        f"{len(_ready(draft, task.name))} of {task.min_available} pods of {task.name} are ready"
        for task in tasks
        if task.name in asked and task.min_available and not _is_ready(draft, task.name)
    ]
    return "; ".join(said)


def _is_ready(draft: Draft, name: str) -> bool:
    task = next(task for task in draft.job.spec.tasks if task.name == name)
    return not task.min_available or len(_ready(draft, name)) >= task.min_available


def _ready(draft: Draft, name: str) -> IndexSet:
    pods = draft.observed.task(name)
    return pods.ready | pods.at(PodPhase.SUCCEEDED) | draft.done.get(name, NO_INDICES)
