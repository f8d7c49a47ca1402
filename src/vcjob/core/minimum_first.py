"""Pods beyond the minimum are made once the minimum runs, if an annotation asks for it.

Where far more pods are wanted than needed (user case P98), those that the Job cannot do without
come first. Nothing of it is recorded: which pods run tells who is still held back.
"""

from collections.abc import Mapping

from vcjob.api.names import MINIMUM_FIRST
from vcjob.core.annotations import switched
from vcjob.core.draft import Draft
from vcjob.core.facts import PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.podgroup import minimum_pods
from vcjob.core.waiting import effective_minimum

NOT_HELD: Mapping[str, IndexSet] = {}


def held_back(
    draft: Draft, waiting: frozenset[str], priorities: Mapping[str, int]
) -> Mapping[str, IndexSet]:
    """Places, by task, that lack a pod and get none before the minimum runs; empty once it does.

    The minimum is that of the PodGroup, the lowest indices of each task. A pod that has ended
    counts as one that runs, as for the Job's phase. Tasks that are ``waiting`` for their turn are
    left out. ``priorities`` are values of PriorityClasses by name.
    """
    if not switched(draft.job, MINIMUM_FIRST):
        return NOT_HELD
    tasks = [task for task in draft.job.spec.tasks if task.name not in waiting]
    least = minimum_pods(tasks, effective_minimum(draft.job, waiting), priorities)
    if all(not IndexSet.below(count) - begun(draft, name) for name, count in least.items()):
        return NOT_HELD
    held: dict[str, IndexSet] = {}
    for task in tasks:
        beyond = IndexSet.below(task.replicas) - IndexSet.below(least.get(task.name, 0))
        lacking = beyond - draft.observed.task(task.name).slots
        if lacking := lacking - draft.done.get(task.name, NO_INDICES):
            held[task.name] = lacking
    return held


def begun(draft: Draft, task: str) -> IndexSet:
    """Indices of a task whose pod, the one that is wanted now, runs or has ended."""
    pods = draft.observed.task(task)
    begun = pods.at(PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED)
    return (begun - draft.condemned(task, pods)) | draft.done.get(task, NO_INDICES)
