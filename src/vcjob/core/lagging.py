"""Which pods of a Job have not started yet: how many of which task, and why the first does not."""

from collections.abc import Mapping

from vcjob.core.actions import Phase
from vcjob.core.draft import Draft
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.minimum_first import begun
from vcjob.core.waiting import effective_minimum

_LISTED_TASKS = 5


def lagging(
    draft: Draft, waiting: frozenset[str], held: Mapping[str, IndexSet]
) -> dict[str, IndexSet]:
    """Places, by task, whose pod is due and neither runs nor has ended.

    Tasks that are ``waiting`` have not had their turn, places that are ``held`` back are not due.
    """
    lacking = {}
    for task in draft.job.spec.tasks:
        if task.name not in waiting:
            due = IndexSet.below(task.replicas) - held.get(task.name, NO_INDICES)
            if late := due - begun(draft, task.name):
                lacking[task.name] = late
    return lacking


def progress(draft: Draft, waiting: frozenset[str], late: Mapping[str, IndexSet]) -> str:
    """How many pods have started, how many must, and of which tasks those are that lag."""
    tasks = draft.job.spec.tasks
    wanted = sum(task.replicas for task in tasks)
    started = sum(len(begun(draft, task.name) & IndexSet.below(task.replicas)) for task in tasks)
    least = effective_minimum(draft.job, waiting)
    said = f"{started} of {wanted} pods {'has' if started == 1 else 'have'} started"
    if draft.phase is Phase.PENDING and 0 < least < wanted:
        said += f", {least} {'is' if least == 1 else 'are'} needed"
    if len(tasks) > 1 and late:
        said += f"; not yet {_by_task(late)}"
    return said


def unable(draft: Draft, late: Mapping[str, IndexSet]) -> PodFacts | None:
    """The first pod that cannot start, for example because its image cannot be had."""
    for name, indices in late.items():
        pods = draft.observed.task(name)
        if some := pods.failing & pods.at(PodPhase.PENDING) & indices:
            return draft.observed.pods[name, some.first]
    return None


def unsteady(draft: Draft) -> PodFacts | None:
    """The first pod that has started, but with a container that ends again and again."""
    for name, pods in draft.observed.tasks.items():
        if some := (pods.failing & pods.at(PodPhase.RUNNING)) - draft.condemned(name, pods):
            return draft.observed.pods[name, some.first]
    return None


def why_not(draft: Draft, late: Mapping[str, IndexSet]) -> str:
    """Why the first pod of those that lag does not run, if anything is known of one."""
    for name, indices in late.items():
        if some := draft.observed.task(name).unscheduled & indices:
            facts = draft.observed.pods[name, some.first]
            return f"pod {facts.name} has no node: {facts.unscheduled}"
    for phase, what in _OTHERWISE.items():
        for name, indices in late.items():
            if some := draft.observed.task(name).at(phase) & indices:
                return f"pod {draft.observed.pods[name, some.first].name} {what}"
    return ""


_OTHERWISE = {
    PodPhase.TERMINATING: "is still ending",
    PodPhase.UNKNOWN: "is on a node that does not answer",
    PodPhase.PENDING: "is Pending (its Events may say more)",
}


def _by_task(late: Mapping[str, IndexSet]) -> str:
    shown = [f"{len(some)} of task {name}" for name, some in list(late.items())[:_LISTED_TASKS]]
    if more := len(late) - len(shown):
        shown.append(f"some of {more} more task{'s' if more > 1 else ''}")
    return ", ".join(shown)
