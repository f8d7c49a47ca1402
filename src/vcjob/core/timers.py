"""Actions that policies want after a timeout, unless their reason is gone by then.

Source: lifecycle.md section 5. Timers are part of the recorded state. They are dropped when their
reason is gone, and looked at again when they fire.
"""

import msgspec

from vcjob.api.duration import format_duration
from vcjob.api.names import pod_name
from vcjob.core.actions import ACTIVE, TARGETED, Action, Event
from vcjob.core.draft import Draft, Place, has_target, restarted_by, start, task_of
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.occurrences import Occurrence, completed, how_ended, most_restarts
from vcjob.core.policies import Answer, answer
from vcjob.core.refusals import is_refused, refuse
from vcjob.core.retries import counted_under
from vcjob.core.state import Timer
from vcjob.core.times import duration_of


def schedule(draft: Draft, one: Occurrence, reply: Answer, cause: str, now: float) -> None:
    """Start a timer, unless one with the same action runs for the pod; another one makes way."""
    task = one.place.task if one.place else ""
    index = IndexSet.of(one.place.index) if one.place else NO_INDICES
    kept: list[Timer] = []
    for timer in draft.state.timers:
        ours = timer.task == task and (not task or bool(IndexSet.parse(timer.indices) & index))
        if ours and timer.action == reply.action:
            return
        if ours and task:
            rest = IndexSet.parse(timer.indices) - index
            if rest:
                kept.append(msgspec.structs.replace(timer, indices=str(rest)))
        elif not ours:
            kept.append(timer)
    draft.state = msgspec.structs.replace(draft.state, timers=tuple(kept))
    code = reply.exit_code or 0
    timer = Timer(one.event, reply.action, now + reply.delay, task, str(index), code)
    _arm(draft, timer, cause, reply.delay)


def arm_pending(draft: Draft, now: float) -> None:
    """Start the timers of PodPending policies for pods that are Pending and have none."""
    for task in draft.job.spec.tasks:
        reply = answer(draft.job.spec, task.name, Event.POD_PENDING)
        if not reply or is_refused(draft, Event.POD_PENDING, task.name, reply.action):
            continue
        pods = draft.observed.task(task.name)
        waiting = pods.at(PodPhase.PENDING) - draft.condemned(task.name, pods)
        waiting -= _timed(draft, task.name, Event.POD_PENDING)
        if waiting:
            due = now + reply.delay
            timer = Timer(Event.POD_PENDING, reply.action, due, task.name, str(waiting))
            _arm(draft, timer, f"{_named(draft, task.name, waiting)} Pending", reply.delay)


def drop_timers(draft: Draft, group_phase: str) -> None:
    """Drop timers whose reason is gone."""
    kept: list[Timer] = []
    for timer in draft.state.timers:
        if not timer.task:
            if group_phase == "Unknown":
                kept.append(timer)
            continue
        indices = IndexSet.parse(timer.indices) & _still(draft, timer)
        if indices:
            kept.append(msgspec.structs.replace(timer, indices=str(indices)))
    if tuple(kept) != draft.state.timers:
        draft.state = msgspec.structs.replace(draft.state, timers=tuple(kept))


def fire_timers(draft: Draft, now: float) -> None:
    """Do what is due, earliest first."""
    while draft.phase in ACTIVE and (due := [one for one in draft.state.timers if one.due <= now]):
        timer = min(due, key=lambda one: one.due)
        rest = tuple(other for other in draft.state.timers if other is not timer)
        draft.state = msgspec.structs.replace(draft.state, timers=rest)
        action = Action(timer.action)
        if not timer.task:
            if not has_target(draft, action, None):
                refuse(draft, timer.event, timer.task, action)
            why = "the PodGroup's phase is still Unknown (policy for Unknown)"
            start(draft, action, why, event=timer.event)
            continue
        left = IndexSet.parse(timer.indices)
        while left and draft.phase in ACTIVE and not draft.killed:
            index = min(left)
            facts = draft.observed.pods.get((timer.task, index))
            place = Place(timer.task, index, facts.retry if facts else 0)
            restarted = restarted_by(draft.job, action, place)
            if action in TARGETED and not restarted:
                refuse(draft, timer.event, timer.task, action)
                left = NO_INDICES  # one Warning for all of them
            event = counted_under(timer.event, timer.exit_code or None)
            start(
                draft, action, _overdue(timer, draft.job.metadata.name, index, facts), place, event
            )
            left -= restarted | IndexSet.of(index)


def _arm(draft: Draft, timer: Timer, cause: str, delay: float) -> None:
    timers = []
    joined = timer
    for other in draft.state.timers:
        same = msgspec.structs.replace(other, indices="") == msgspec.structs.replace(
            timer, indices=""
        )
        if same and timer.task:
            union = IndexSet.parse(other.indices) | IndexSet.parse(joined.indices)
            joined = msgspec.structs.replace(joined, indices=str(union))
        else:
            timers.append(other)
    draft.state = msgspec.structs.replace(draft.state, timers=(*timers, joined))
    after = format_duration(duration_of(delay))
    message = f"Execute action {timer.action} after {after}, unless its reason is gone by then"
    draft.tell("Normal", "ExecuteAction", f"{message}: {cause}")


def _named(draft: Draft, task: str, indices: IndexSet) -> str:
    """The pods that something is, as the beginning of a sentence."""
    if len(indices) > 1:
        return f"{len(indices)} pods of task {task} are"
    return f"pod {draft.job.metadata.name}-{task}-{indices} is"


def _overdue(timer: Timer, job: str, index: int, facts: PodFacts | None) -> str:
    """Why a timer's action is done to the pod at ``index``, as the beginning of a sentence.

    The pod goes with the action, so this is the last place where its own reasons can be read.
    """
    pod = pod_name(job, timer.task, index)
    if timer.event == Event.POD_PENDING:
        why = facts.failing or facts.unscheduled if facts else ""
        because = f": {why}" if why else ""
        return f"pod {pod} has been Pending for too long (policy for PodPending){because}"
    policy = f"exit code {timer.exit_code}" if timer.exit_code else timer.event
    over = f"the timeout of the policy for {policy} is over for"
    if timer.event == Event.TASK_COMPLETED:
        return f"{over} task {timer.task}"
    how = how_ended(facts) if facts and not facts.evicted else ""
    if not facts or not how:
        return f"{over} pod {pod}"
    what = "which" if facts.ended else "whose container"
    return f"{over} pod {pod}, {what} ended{how}"


def _still(draft: Draft, timer: Timer) -> IndexSet:
    """Indices of pods for which the reason of a timer goes on."""
    pods = draft.observed.task(timer.task)
    task = task_of(draft.job, timer.task)
    if not task:
        return NO_INDICES
    everything = IndexSet.below(task.replicas)
    match timer.event:
        case Event.POD_PENDING:
            return pods.at(PodPhase.PENDING) & everything
        case Event.TASK_COMPLETED:
            return everything if completed(draft, task) else NO_INDICES
        case Event.TASK_FAILED:
            most = most_restarts(task)
            return IndexSet.of(
                *(
                    index
                    for index in IndexSet.parse(timer.indices)
                    if (facts := draft.observed.pods.get((timer.task, index)))
                    and most is not None
                    and facts.restarts >= most
                )
            )
        case _ if timer.exit_code:
            return everything - _well_without_code(draft, timer)
        case _:
            return everything - _well(draft, timer)


def _well(draft: Draft, timer: Timer) -> IndexSet:
    """Indices of the task's pods that run, or did what they are for before that was seen."""
    pods = draft.observed.task(timer.task)
    succeeded = IndexSet.of(
        *(
            index
            for index in IndexSet.parse(timer.indices) & pods.at(PodPhase.SUCCEEDED)
            if not draft.observed.pods[timer.task, index].evicted
        )
    )
    return pods.at(PodPhase.RUNNING) | succeeded


def _well_without_code(draft: Draft, timer: Timer) -> IndexSet:
    """Indices of a timer's pods that are well and no longer show the exit code."""
    return IndexSet.of(
        *(
            index
            for index in IndexSet.parse(timer.indices) & _well(draft, timer)
            if timer.exit_code not in draft.observed.pods[timer.task, index].exit_codes
        )
    )


def _timed(draft: Draft, task: str, event: Event) -> IndexSet:
    """Indices of a task's pods for which a timer of this event runs."""
    timed = NO_INDICES
    for timer in draft.state.timers:
        if timer.task == task and timer.event == event:
            timed |= IndexSet.parse(timer.indices)
    return timed
