"""Which pods of a Job live, which must go, and which places lack one.

Counting is in sets of indices, so that a pass over a large Job costs little. A pod that has
Succeeded is not made again though somebody deletes it, hence ``done``; one that lived and is gone
was evicted, hence ``alive``: both are recorded in the status (core/state.py).
"""

from collections.abc import Iterator, Mapping

from vcjob.core.actions import ACTIVE
from vcjob.core.draft import Draft
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.minimum_first import NOT_HELD
from vcjob.core.observed import Slot
from vcjob.core.occurrences import is_current

BATCH = 500
"""The most pods that one plan creates, and the most that it removes."""


def note_done(draft: Draft) -> None:
    """Write down which pods have Succeeded and are gone, before anything is decided.

    Afterwards a kill would make them pods of an older version, of which nobody knows.
    """
    for (name, index), facts in draft.observed.gone.items():
        if facts.ended is PodPhase.SUCCEEDED and is_current(draft, facts):
            draft.done[name] = draft.done.get(name, NO_INDICES) | IndexSet.of(index)


def take_stock(draft: Draft) -> None:
    """Write down which pods live and which have Succeeded, for whoever finds them missing."""
    for task in draft.job.spec.tasks:
        pods = draft.observed.task(task.name)
        doomed = draft.condemned(task.name, pods)
        wanted = IndexSet.below(task.replicas)
        succeeded = pods.ended.get(PodPhase.SUCCEEDED, NO_INDICES) - doomed
        if draft.phase not in ACTIVE:
            succeeded |= pods.ended.get(PodPhase.SUCCEEDED, NO_INDICES)
        draft.done[task.name] = (draft.done.get(task.name, NO_INDICES) | succeeded) & wanted
        living = pods.slots - doomed - pods.ended_by_themselves - pods.at(PodPhase.FAILED)
        draft.alive[task.name] = living & wanted if draft.phase in ACTIVE else NO_INDICES
    names = {task.name for task in draft.job.spec.tasks}
    for record in (draft.alive, draft.done):
        for name in record.keys() - names:
            del record[name]


def pods_to_remove(draft: Draft) -> tuple[PodFacts, ...]:
    """Pods that are to go, apart from those on their way: at most ``BATCH``."""
    chosen: list[PodFacts] = []
    for name, pods in draft.observed.tasks.items():
        for index in draft.condemned(name, pods) - pods.at(PodPhase.TERMINATING):
            if len(chosen) >= BATCH:
                return tuple(chosen)
            chosen.append(draft.observed.pods[name, index])
    return tuple(chosen)


def lacks_pods(draft: Draft) -> bool:
    """Whether a pod is to be made, now or once an old one is gone."""
    if draft.phase not in ACTIVE:
        return False
    for task in draft.job.spec.tasks:
        pods = draft.observed.task(task.name)
        staying = pods.slots - draft.condemned(task.name, pods) - pods.at(PodPhase.TERMINATING)
        if IndexSet.below(task.replicas) - staying - draft.done.get(task.name, NO_INDICES):
            return True
    return False


def still_there(draft: Draft) -> tuple[int, Iterator[str]]:
    """How many pods are to go and have not yet, and their names.

    While the Job is being stopped those that have ended stay; a restart may replace them, too.
    """
    leaving: dict[str, IndexSet] = {}
    for name, pods in draft.observed.tasks.items():
        if draft.phase in ACTIVE:
            leaving[name] = draft.condemned(name, pods) | pods.at(PodPhase.TERMINATING)
        else:
            leaving[name] = pods.slots - pods.at(PodPhase.SUCCEEDED, PodPhase.FAILED)
    names = (
        draft.observed.pods[name, index].name for name, some in leaving.items() for index in some
    )
    return sum(map(len, leaving.values())), names


def places_to_fill(
    draft: Draft, waiting: frozenset[str], held: Mapping[str, IndexSet] = NOT_HELD
) -> tuple[Slot, ...]:
    """Places that lack a pod, at most ``BATCH``; none while pods of an older version are there.

    Tasks that are ``waiting`` for their turn get none, nor do places that are ``held`` back until
    the minimum runs.
    """
    for name, pods in draft.observed.tasks.items():
        if draft.condemned(name, pods) & pods.older_than(draft.version):
            return ()
    chosen: list[Slot] = []
    for task in draft.job.spec.tasks:
        if task.name in waiting:
            continue
        missing = IndexSet.below(task.replicas) - draft.observed.task(task.name).slots
        missing -= held.get(task.name, NO_INDICES)
        for index in missing - draft.done.get(task.name, NO_INDICES):
            if len(chosen) >= BATCH:
                return tuple(chosen)
            chosen.append((task.name, index))
    return tuple(chosen)
