"""What has happened to a Job's pods that policies may answer, told from what is there now.

Nothing here depends on having seen it happen: a controller that starts after the fact finds the
same events. One pod gives one event (docs/lifecycle.md).
"""

from collections.abc import Iterator

import msgspec

from vcjob.api.names import pod_name
from vcjob.api.types import Task
from vcjob.core.actions import Event
from vcjob.core.draft import Draft, Place, task_of
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet

_DEFAULT_TASK_RETRIES = 3


class Occurrence(msgspec.Struct, frozen=True):
    """Something that happened. ``cause`` begins a sentence; ``when`` orders occurrences."""

    event: Event
    cause: str
    task: str = ""
    place: Place | None = None
    exit_codes: tuple[int, ...] = ()
    when: float = 0.0
    only_exit_codes: bool = False


def occurrences(draft: Draft, group_phase: str, now: float) -> list[Occurrence]:
    """All that policies may answer at once, earliest first, then by name."""
    if not has_policies(draft):
        return []
    found = [*_of_pods(draft), *_vanished(draft, now), *_completed_tasks(draft)]
    if group_phase == "Unknown":
        found.append(Occurrence(Event.UNKNOWN, "the PodGroup's phase is Unknown", when=now))
    return sorted(found, key=lambda one: (one.when, one.cause))


def has_policies(draft: Draft) -> bool:
    """Whether anything that happens could be answered at all."""
    spec = draft.job.spec
    return bool(spec.policies) or any(task.policies for task in spec.tasks)


def is_current(draft: Draft, facts: PodFacts) -> bool:
    """Whether what happens to a pod still matters: it is wanted, and no restart is replacing it."""
    task = task_of(draft.job, facts.task)
    if not task or facts.index >= task.replicas or facts.version < draft.version or facts.marked:
        return False
    return not any(
        target.task == facts.task
        and facts.retry < target.retry
        and facts.index in IndexSet.parse(target.indices)
        for target in draft.state.targets
    )


def most_restarts(task: Task) -> int | None:
    """How many restarts of a pod's containers make the task fail, None if none do."""
    if task.max_retry < 0:
        return None
    return task.max_retry or _DEFAULT_TASK_RETRIES


def vanished_indices(draft: Draft, task: Task) -> IndexSet:
    """Indices of a task whose pod was there and is there no more."""
    slots = draft.observed.task(task.name).slots
    missing = draft.alive.get(task.name, NO_INDICES) - slots
    for (name, index), facts in draft.observed.gone.items():
        if name != task.name:
            continue
        if facts.marked:
            missing -= IndexSet.of(index)  # a controller deleted it, for a reason of its own
        elif is_current(draft, facts):
            missing |= IndexSet.of(index) - slots
    return missing & IndexSet.below(task.replicas)


def completed(draft: Draft, task: Task) -> bool:
    """Whether all pods of a task have Succeeded."""
    pods = draft.observed.task(task.name)
    succeeded = pods.at(PodPhase.SUCCEEDED) | draft.done.get(task.name, NO_INDICES)
    return len(succeeded & IndexSet.below(task.replicas)) >= task.replicas > 0


def _of_pods(draft: Draft) -> Iterator[Occurrence]:
    for slot in draft.observed.attention:
        facts = draft.observed.pods.get(slot)
        task = task_of(draft.job, slot[0])
        if not facts or not task or not is_current(draft, facts):
            continue
        place = Place(facts.task, facts.index, facts.retry)
        most = most_restarts(task)
        if facts.phase is PodPhase.FAILED or facts.ended is PodPhase.FAILED:
            yield _failure(facts, place)
        elif facts.phase is PodPhase.TERMINATING:
            continue  # it is an eviction once the pod is gone
        elif facts.phase in (PodPhase.PENDING, PodPhase.RUNNING):
            if most is not None and facts.restarts >= most:
                times = "once" if facts.restarts == 1 else f"{facts.restarts} times"
                how = how_ended(facts)
                cause = f"containers of pod {facts.name} restarted {times}"
                cause += f", ending{how}" if how else ""
                yield Occurrence(
                    Event.TASK_FAILED, cause, facts.task, place, facts.exit_codes, facts.finished
                )
            elif facts.exit_codes:
                cause = f"a container of pod {facts.name} ended{how_ended(facts)}"
                yield Occurrence(
                    Event.POD_FAILED,
                    cause,
                    facts.task,
                    place,
                    facts.exit_codes,
                    facts.finished,
                    only_exit_codes=True,
                )


def _vanished(draft: Draft, now: float) -> Iterator[Occurrence]:
    for task in draft.job.spec.tasks:
        for index in vanished_indices(draft, task):
            facts = draft.observed.gone.get((task.name, index))
            if facts and facts.ended is PodPhase.SUCCEEDED:
                continue
            place = Place(task.name, index, facts.retry if facts else 0)
            if facts and facts.ended is PodPhase.FAILED:
                if (task.name, index) in draft.observed.attention:
                    yield _failure(facts, place)
                continue
            name = pod_name(draft.job.metadata.name, task.name, index)
            cause = f"pod {name} was deleted"
            yield Occurrence(Event.POD_EVICTED, cause, task.name, place, when=now)


def _completed_tasks(draft: Draft) -> Iterator[Occurrence]:
    for task in draft.job.spec.tasks:
        if not completed(draft, task):
            continue
        pods = draft.observed.task(task.name)
        recent = pods.at(PodPhase.SUCCEEDED) - pods.older_than(draft.version)
        if recent:
            last = max(
                (draft.observed.pods[task.name, index] for index in recent),
                key=lambda facts: (facts.finished, facts.index),
            )
            place = Place(task.name, last.index, last.retry)
            everyone = f"all {task.replicas} pods" if task.replicas > 1 else "the only pod"
            cause = f"{everyone} of task {task.name} succeeded"
            yield Occurrence(Event.TASK_COMPLETED, cause, task.name, place, when=last.finished)


def _failure(facts: PodFacts, place: Place) -> Occurrence:
    if facts.evicted:
        cause = f"pod {facts.name} was evicted"
        return Occurrence(Event.POD_EVICTED, cause, facts.task, place, when=facts.finished)
    cause = f"pod {facts.name} failed{how_ended(facts)}"
    return Occurrence(Event.POD_FAILED, cause, facts.task, place, facts.exit_codes, facts.finished)


def how_ended(facts: PodFacts) -> str:
    """The exit codes, and what made the pod end if not itself."""
    outside = f" ({facts.ended_by})" if facts.ended_by else ""
    if not facts.exit_codes:
        return outside
    shown = ", ".join(map(str, dict.fromkeys(facts.exit_codes)))
    return f" with exit code{'s' if len(set(facts.exit_codes)) > 1 else ''} {shown}{outside}"
