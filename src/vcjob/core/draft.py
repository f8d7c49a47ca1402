"""A Job's course in the making: what one pass of planning changes, before it is recorded.

``Draft`` starts as what the status says; actions and phase rules change it; then it is written back
in one status write. Source: lifecycle.md sections 3, 7 and 8; docs/lifecycle.md.
"""

from dataclasses import dataclass, field

import msgspec

from vcjob.api.types import Job, Object, Task
from vcjob.core.actions import ACTIVE, STOPPING, TARGETED, Action, Phase
from vcjob.core.departing import without_end
from vcjob.core.facts import PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.observed import Observed, TaskPods
from vcjob.core.retries import (
    is_uncounted,
    max_retry,
    uncounted_events,
    used_up,
    with_restart,
)
from vcjob.core.scheduling.group_status import was_taken_back
from vcjob.core.state import State, Target, state_of, without_places


class Told(msgspec.Struct, frozen=True):
    """An Event for the user: ``type`` is Normal or Warning."""

    type: str
    reason: str
    message: str


class Place(msgspec.Struct, frozen=True):
    """Which pod an event happened to; ``retry`` is the one that the pod was made for."""

    task: str
    index: int
    retry: int


@dataclass
class Draft:
    """The course of one Job. ``group_uid`` is the UID of its PodGroup, empty if there is none.

    ``message`` is why the Job is where it is, ``end`` what keeps it from going on from there.
    ``forgotten`` are successes of pods that a restart of this very pass is to replace.
    """

    job: Job
    observed: Observed
    state: State
    phase: Phase
    version: int
    retry: int
    group_uid: str
    reason: str
    message: str
    alive: dict[str, IndexSet]
    done: dict[str, IndexSet]
    end: str = ""
    told: list[Told] = field(default_factory=list)
    forgotten: dict[str, IndexSet] = field(default_factory=dict)
    killed: bool = False

    def tell(self, kind: str, reason: str, message: str) -> None:
        """Have an Event made once the draft is recorded."""
        self.told.append(Told(kind, reason, message))

    def enter(self, phase: Phase, reason: str, message: str) -> None:
        """Change the phase, and say why."""
        self.phase, self.reason, self.message = phase, reason, message

    def kill(self, *, keep: bool) -> None:
        """Want a new generation of pods, or none: all pods of today are to go.

        ``keep``: those that have ended stay. The PodGroup goes too: its old phase would admit the
        new pods.
        """
        self.version += 1
        self.killed = True
        self.alive = {}
        if keep:
            self.replace_nothing()
        else:
            self.done = {}
        self.state = msgspec.structs.replace(
            self.state, keep=keep, targets=(), timers=(), group=self.group_uid, resumed=False
        )

    def replace_nothing(self) -> None:
        """Have what succeeded stay so, also where this pass was to replace it."""
        for task, indices in self.forgotten.items():
            self.done[task] = self.done.get(task, NO_INDICES) | indices
        self.forgotten = {}

    def condemned(self, name: str, pods: TaskPods) -> IndexSet:
        """Indices of pods of a task that are to be removed, or are being removed by us.

        A pod that bears the mark of a kill is one of them, whoever began that kill: Volcano's
        controller marks each pod before it deletes it.
        """
        task = task_of(self.job, name)
        ended = pods.at(PodPhase.SUCCEEDED, PodPhase.FAILED)
        old = pods.older_than(self.version)
        doomed = pods.marked | (old - ended if self.state.keep else old)
        for target in self.state.targets:
            if target.task == name:
                targeted = IndexSet.parse(target.indices) & pods.before_retry(target.retry)
                doomed |= targeted - ended if is_used_up(self) else targeted
        if self.phase not in ACTIVE:
            doomed |= pods.slots - ended
        return doomed | (pods.slots - IndexSet.below(task.replicas if task else 0))


def begin(job: Job, observed: Observed, group: Object | None) -> Draft:
    """The draft that changes nothing yet.

    Pods of a gang that was taken back are deleted on purpose: that some are missing, though nobody
    saw them go, tells nothing of evictions.
    """
    status = job.status
    state = state_of(job)
    lived = () if was_taken_back(group) else state.alive
    return Draft(
        job=job,
        observed=observed,
        state=state,
        phase=_PHASES.get(status.state.phase, Phase.NEW),
        version=status.version,
        retry=status.retry_count,
        group_uid=group["metadata"]["uid"] if group else "",
        reason=status.state.reason,
        message=without_end(status.state.message, state.end),
        alive={task: state.alive_of(task) for task in lived},
        done={task: state.done_of(task) for task in state.done},
    )


def carry_out(
    draft: Draft, action: Action, cause: str, place: Place | None = None, event: str = ""
) -> bool:
    """Carry out an action, as far as the phase allows; returns whether it changed anything.

    ``cause`` says why, as the beginning of a sentence. ``place`` is the pod of the event, None for
    events and Commands that concern none. ``event`` is empty for Commands.
    """
    if action is Action.RESUME_JOB:
        return _resume(draft, cause)
    if draft.phase not in ACTIVE:
        return False
    if action in STOPPING:
        draft.kill(keep=True)
        draft.enter(STOPPING[action], str(action), cause)
    elif action in TARGETED:
        return _restart_some(draft, action, cause, place, event)
    elif draft.phase is Phase.RESTARTING:
        if not _has_current_pods(draft):
            return False
        _join_attempt(draft, event)
        draft.kill(keep=_has_no_retry_left(draft))
        draft.enter(Phase.RESTARTING, str(action), f"{cause}; {_retries(draft)}")
    else:
        _begin_attempt(draft, event)
        draft.kill(keep=_has_no_retry_left(draft))
        draft.enter(Phase.RESTARTING, str(action), f"{cause}; {_retries(draft)}")
    return True


def start(
    draft: Draft, action: Action, cause: str, place: Place | None = None, event: str = ""
) -> bool:
    """Carry out an action, and tell so if it changed anything; returns whether it did."""
    changed = carry_out(draft, action, cause, place, event)
    if changed:
        restarts = draft.phase is Phase.RESTARTING and is_used_up(draft)
        what = "Do not execute" if restarts else "Start to execute"
        draft.tell("Normal", "ExecuteAction", f"{what} action {action}: {draft.message}")
    return changed


def task_of(job: Job, name: str) -> Task | None:
    """The task of this name, or None."""
    return next((task for task in job.spec.tasks if task.name == name), None)


def is_used_up(draft: Draft) -> bool:
    """Whether the restart that is under way is one too many: the Job fails instead."""
    return not draft.state.resumed and _has_no_retry_left(draft)


def has_target(draft: Draft, action: Action, place: Place | None) -> bool:
    """Whether there is something for an action to act upon, at this place."""
    return action not in TARGETED or bool(restarted_by(draft.job, action, place))


def _resume(draft: Draft, cause: str) -> bool:
    if draft.phase not in (Phase.ABORTING, Phase.ABORTED):
        return False
    draft.state = msgspec.structs.replace(draft.state, resumed=True)
    draft.enter(Phase.RESTARTING, str(Action.RESUME_JOB), cause)
    return True


def _restart_some(
    draft: Draft, action: Action, cause: str, place: Place | None, event: str
) -> bool:
    indices = restarted_by(draft.job, action, place)
    if not place or not indices:
        draft.tell("Warning", str(action), f"{cause}, but {_why_nothing(action, place)}")
        return False
    if draft.phase is not Phase.RESTARTING or place.retry >= draft.retry:
        _begin_attempt(draft, event)
    else:
        _join_attempt(draft, event)
    target = Target(place.task, str(indices), draft.retry)
    timers = without_places(draft.state.timers, place.task, indices)
    draft.state = msgspec.structs.replace(
        draft.state, targets=(*draft.state.targets, target), timers=timers
    )
    draft.alive[place.task] = draft.alive.get(place.task, NO_INDICES) - indices
    done = draft.done.get(place.task, NO_INDICES)
    draft.done[place.task] = done - indices
    draft.forgotten[place.task] = draft.forgotten.get(place.task, NO_INDICES) | done & indices
    if is_used_up(draft):
        draft.replace_nothing()
    draft.enter(Phase.RESTARTING, str(action), f"{cause}; {_retries(draft)}")
    return True


def _why_nothing(action: Action, place: Place | None) -> str:
    if place and action is Action.RESTART_PARTITION:
        return (
            f"task {place.task} has no partitionPolicy that says which pods go together: "
            "create the Job anew with one, or with RestartTask in place of RestartPartition"
        )
    return f"this concerns no pod that {action} could restart; RestartJob restarts all"


def restarted_by(job: Job, action: Action, place: Place | None) -> IndexSet:
    """The pods that a targeted action restarts."""
    task = task_of(job, place.task) if place else None
    if not place or not task:
        return NO_INDICES
    if action is Action.RESTART_TASK:
        return IndexSet.below(task.replicas)
    if action is Action.RESTART_POD:
        return IndexSet.of(place.index)
    policy = task.partition_policy
    if not policy or policy.partition_size <= 0:
        return NO_INDICES
    first = place.index // policy.partition_size * policy.partition_size
    return IndexSet.below(min(first + policy.partition_size, task.replicas)) - IndexSet.below(first)


def _has_current_pods(draft: Draft) -> bool:
    """Whether some pod belongs to the generation that is wanted now."""
    return any(
        pods.slots - draft.condemned(name, pods) for name, pods in draft.observed.tasks.items()
    )


def _begin_attempt(draft: Draft, event: str) -> None:
    """Count a restart, and note whether it uses up a retry."""
    draft.retry += 1
    _count(draft, counts=event not in uncounted_events(draft.job))


def _join_attempt(draft: Draft, event: str) -> None:
    """Let a restart that is under way use up a retry after all, if this reason of it does."""
    if not draft.state.resumed and event not in uncounted_events(draft.job):
        _count(draft, counts=True)


def _count(draft: Draft, *, counts: bool) -> None:
    uncounted = with_restart(draft.state.uncounted_retries, draft.retry, counts=counts)
    draft.state = msgspec.structs.replace(draft.state, uncounted=str(uncounted))


def _has_no_retry_left(draft: Draft) -> bool:
    return used_up(draft.retry, draft.state.uncounted_retries) >= max_retry(draft.job)


def _retries(draft: Draft) -> str:
    most = max_retry(draft.job)
    uncounted = draft.state.uncounted_retries
    used = used_up(draft.retry, uncounted)
    if is_uncounted(draft.retry, uncounted):
        return f"attempt {used + 1} of {most} goes on, as this restart uses up no retry"
    if used < most:
        return f"attempt {used + 1} of {most} begins"
    last = f"the last of {most} attempts" if most > 1 else "the only attempt"
    return f"that was {last} (maxRetry), so the Job fails"


_PHASES = {phase.value: phase for phase in Phase}
