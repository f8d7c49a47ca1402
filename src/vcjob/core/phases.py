"""When a Job goes to its next phase by itself. Source: lifecycle.md section 3; docs/lifecycle.md.

Phases follow from counts alone, so that a Job whose pods are all done ends from whatever phase it
is in, and one step is made at a time: each phase is seen by those who watch.
"""

from collections.abc import Mapping

import msgspec

from vcjob.api.types import Task
from vcjob.core.actions import ENDING, Phase
from vcjob.core.draft import Draft, is_used_up
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.podgroup import task_minimum
from vcjob.core.waiting import effective_minimum

JOB_FAILED = "JobFailed"
"""The reason of the Event that tells that a Job failed, in the words of its message."""

_LISTED_PODS = 3


class Counts(msgspec.Struct, frozen=True):
    """How many pods are in which phase; ``succeeded`` counts cleaned-up ones too."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0

    @property
    def alive(self) -> int:
        """Pods that have not ended."""
        return self.pending + self.running + self.terminating + self.unknown


def count_pods(draft: Draft) -> Counts:
    """All pods of a Job, as its status shows them."""
    everything = {name: pods.slots for name, pods in draft.observed.tasks.items()}
    return _count(draft, everything, draft.done)


def count_wanted(draft: Draft) -> Counts:
    """Only the pods that a Job wants to have, which decide on its phase."""
    wanted: dict[str, IndexSet] = {}
    for name, pods in draft.observed.tasks.items():
        wanted[name] = pods.slots - draft.condemned(name, pods)
    return _count(draft, wanted, {t.name: IndexSet.below(t.replicas) for t in draft.job.spec.tasks})


def _count(draft: Draft, slots: Mapping[str, IndexSet], indices: Mapping[str, IndexSet]) -> Counts:
    counts = dict.fromkeys(PodPhase, 0)
    for name, some in slots.items():
        for phase, these in draft.observed.tasks[name].by_phase.items():
            counts[phase] += len(these & some)
    cleaned = sum(len(cleaned_up(draft, task) & some) for task, some in indices.items())
    return Counts(
        counts[PodPhase.PENDING],
        counts[PodPhase.RUNNING],
        counts[PodPhase.SUCCEEDED] + cleaned,
        counts[PodPhase.FAILED],
        counts[PodPhase.TERMINATING],
        counts[PodPhase.UNKNOWN],
    )


def cleaned_up(draft: Draft, task: str) -> IndexSet:
    """Indices of a task that have Succeeded and whose pod is no more."""
    return draft.done.get(task, NO_INDICES) - draft.observed.task(task).slots


def advance(draft: Draft, waiting: frozenset[str], *, admitted: bool) -> None:
    """Go to the next phase, if it is time. ``waiting`` tasks have not begun (``dependsOn``)."""
    counts = count_wanted(draft)
    match draft.phase:
        case Phase.NEW:
            draft.enter(Phase.PENDING, "Created", "")
        case Phase.PENDING:
            least = effective_minimum(draft.job, waiting)
            if least <= counts.running + counts.succeeded + counts.failed:
                draft.enter(Phase.RUNNING, "", "")
        case Phase.RUNNING:
            _advance_running(draft, counts, waiting)
        case Phase.RESTARTING:
            _advance_restarting(draft, admitted=admitted)
        case Phase.ABORTING | Phase.COMPLETING | Phase.TERMINATING:
            if not count_pods(draft).alive:
                draft.enter(ENDING[draft.phase], draft.reason, draft.message)
        case _:
            pass


def _advance_running(draft: Draft, counts: Counts, waiting: frozenset[str]) -> None:
    spec = draft.job.spec
    replicas = sum(task.replicas for task in spec.tasks)
    least = spec.min_success
    if replicas == 0:
        return
    if least is not None and counts.succeeded >= least:
        _end(draft, Phase.COMPLETED, "MinSuccess", f"{_pods(counts.succeeded)} succeeded, "
             f"minSuccess is {least}")  # fmt: skip
    elif counts.succeeded + counts.failed >= replicas:
        _end_by_results(draft, counts, replicas)
    elif counts.pending > replicas - effective_minimum(draft.job, waiting):
        draft.enter(Phase.PENDING, "", "")


def _end_by_results(draft: Draft, counts: Counts, replicas: int) -> None:
    spec = draft.job.spec
    failures = _failures(draft, counts, replicas)
    short = _short_task(draft)
    if spec.min_success is not None:
        message = f"{_pods(counts.succeeded)} succeeded, minSuccess is {spec.min_success}"
        _end(draft, Phase.FAILED, "MinSuccess", f"{message}{failures}")
    elif short and spec.min_available >= sum(task_minimum(task) for task in spec.tasks):
        some = _pods(_succeeded(draft, short.name))
        least = short.min_available
        message = f"{some} of task {short.name} succeeded, its minAvailable is {least}"
        _end(draft, Phase.FAILED, "TaskFailed", f"{message}{failures}")
    elif counts.succeeded >= spec.min_available:
        _end(draft, Phase.COMPLETED, "PodsSucceeded",
             f"{counts.succeeded} of {replicas} pods succeeded{failures}")  # fmt: skip
    else:
        message = f"{_pods(counts.succeeded)} succeeded, minAvailable is {spec.min_available}"
        _end(draft, Phase.FAILED, "PodsFailed", f"{message}{failures}")


def _short_task(draft: Draft) -> Task | None:
    """The first task with fewer Succeeded pods than its minAvailable, of those that have pods."""
    for task in draft.job.spec.tasks:
        least, succeeded = task.min_available, _succeeded(draft, task.name)
        seen = draft.observed.task(task.name).slots or succeeded
        if seen and least is not None and succeeded < least:
            return task
    return None


def _succeeded(draft: Draft, task: str) -> int:
    """How many pods of a task have Succeeded, those that are no more too."""
    return len(draft.observed.task(task).at(PodPhase.SUCCEEDED) | cleaned_up(draft, task))


def _advance_restarting(draft: Draft, *, admitted: bool) -> None:
    if is_used_up(draft):
        if draft.state.targets:
            draft.kill(keep=True)
        draft.enter(Phase.FAILED, "MaxRetry", draft.message)
        draft.tell("Warning", JOB_FAILED, draft.message)
        return
    leaving = any(draft.condemned(name, pods) for name, pods in draft.observed.tasks.items())
    if not leaving and not count_pods(draft).terminating and (admitted or draft.state.resumed):
        draft.state = msgspec.structs.replace(draft.state, targets=(), resumed=False)
        draft.enter(Phase.PENDING, "", "")


def _end(draft: Draft, phase: Phase, reason: str, message: str) -> None:
    draft.kill(keep=True)
    draft.enter(phase, reason, message)
    draft.tell("Warning" if phase == Phase.FAILED else "Normal", f"Job{phase}", message)


def _pods(count: int) -> str:
    return f"{count or 'no'} pod{'s' if count != 1 else ''}"


def _failures(draft: Draft, counts: Counts, replicas: int) -> str:
    """Which pods failed, and how: the end of a sentence."""
    if not counts.failed:
        return ""
    failed: list[PodFacts] = []
    for name, pods in draft.observed.tasks.items():
        failed += (draft.observed.pods[name, index] for index in pods.at(PodPhase.FAILED))
    failed.sort(key=lambda facts: (facts.finished, facts.name))
    shown = [f"{facts.name}{_how_failed(facts)}" for facts in failed[:_LISTED_PODS]]
    more = ", …" if len(failed) > _LISTED_PODS else ""
    return f"; {counts.failed} of {replicas} failed: {', '.join(shown)}{more}"


def _how_failed(facts: PodFacts) -> str:
    if facts.evicted:  # whatever its containers did then
        return " (evicted)"
    code = f"exit code {facts.exit_codes[0]}" if facts.exit_codes else ""
    how = ", ".join(word for word in (code, facts.ended_by) if word)
    return f" ({how})" if how else ""
