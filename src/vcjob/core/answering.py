"""From what happened to what is done about it: at once, after a policy's timeout, or by a Command.

Source: lifecycle.md sections 4, 5 and 8. Timers are part of the recorded state. They are dropped
when their reason is gone, and looked at again when they fire.
"""

from collections.abc import Iterable

import msgspec

from vcjob.api.duration import format_duration
from vcjob.api.names import SUSPEND, pod_name
from vcjob.api.types import Object
from vcjob.core.actions import ACTIVE, FINAL, Action, Event
from vcjob.core.draft import Draft, Place, carry_out, has_target, task_of
from vcjob.core.facts import PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.occurrences import Occurrence, completed, is_current, most_restarts
from vcjob.core.policies import Answer, answer, answer_exit_codes
from vcjob.core.state import Timer
from vcjob.core.times import duration_of


def obey_commands(draft: Draft, commands: Iterable[Object]) -> bool:
    """Carry out Commands that were not yet handled, oldest first, up to the first with an effect.

    Returns whether one had. The rest waits for the next pass: each effect is seen by itself.
    """
    present = sorted(
        commands,
        key=lambda obj: (obj["metadata"].get("creationTimestamp", ""), obj["metadata"]["name"]),
    )
    handled = [uid for uid in map(_uid, present) if uid in draft.state.commands]
    effect = False
    for command in present:
        if effect or _uid(command) in handled:
            continue
        handled.append(_uid(command))
        effect = _obey(draft, command)
    draft.state = msgspec.structs.replace(draft.state, commands=tuple(handled))
    return effect


def obey_annotation(draft: Draft) -> None:
    """Suspend or resume if the annotation has changed since it was last acted upon."""
    wanted = draft.job.metadata.annotations.get(SUSPEND, "").lower() == "true"
    if wanted == draft.state.suspended or draft.phase in FINAL:
        return
    draft.state = msgspec.structs.replace(draft.state, suspended=wanted)
    if wanted:
        _start(draft, Action.ABORT_JOB, f"the annotation {SUSPEND} was set to true")
    else:
        _start(draft, Action.RESUME_JOB, f"the annotation {SUSPEND} no longer says true")


def answer_occurrences(draft: Draft, found: Iterable[Occurrence], now: float) -> None:
    """Ask the policies about each occurrence, and do or schedule what they say."""
    found = list(found)
    _forget_refused(draft, found)
    for one in found:
        if draft.phase not in ACTIVE or draft.killed:
            return  # the rest happened to pods, or a PodGroup, that are to go
        if one.place and _is_stale(draft, one.place):
            continue
        reply = _reply(draft, one)
        if not reply or _is_refused(draft, one.event, one.task, reply.action):
            continue
        if reply.delay:
            _schedule(draft, one, reply, now)
        else:
            if not has_target(draft, reply.action, one.place):
                _refuse(draft, one.event, one.task, reply.action)
            _start(draft, reply.action, _cause(one, reply.exit_code), one.place)


def arm_pending(draft: Draft, now: float) -> None:
    """Start the timers of PodPending policies for pods that are Pending and have none."""
    for task in draft.job.spec.tasks:
        reply = answer(draft.job.spec, task.name, Event.POD_PENDING)
        if not reply or _is_refused(draft, Event.POD_PENDING, task.name, reply.action):
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
    for timer in sorted(draft.state.timers, key=lambda one: one.due):
        if timer.due > now or timer not in draft.state.timers or draft.phase not in ACTIVE:
            continue
        rest = tuple(other for other in draft.state.timers if other is not timer)
        draft.state = msgspec.structs.replace(draft.state, timers=rest)
        action = Action(timer.action)
        if not timer.task:
            if not has_target(draft, action, None):
                _refuse(draft, timer.event, timer.task, action)
            _start(draft, action, "the PodGroup's phase is still Unknown (policy for Unknown)")
            continue
        for index in IndexSet.parse(timer.indices):
            facts = draft.observed.pods.get((timer.task, index))
            place = Place(timer.task, index, facts.retry if facts else 0)
            name = pod_name(draft.job.metadata.name, timer.task, index)
            if not has_target(draft, action, place):
                _refuse(draft, timer.event, timer.task, action)
            _start(draft, action, _overdue(timer, name), place)
            if action is not Action.RESTART_POD:
                break


# Some occurrences last: a PodGroup stays Unknown, a task stays complete, a pod stays Pending. If
# such a one asks for a restart of pods that there are not, it is told once, not in each pass again.


def _refused(event: str, task: str, action: Action) -> str:
    return f"{event} {task} {action}"


def _is_refused(draft: Draft, event: Event, task: str, action: Action) -> bool:
    return _refused(event, task, action) in draft.state.refused


def _refuse(draft: Draft, event: str, task: str, action: Action) -> None:
    if event in (Event.UNKNOWN, Event.TASK_COMPLETED, Event.POD_PENDING):
        refused = (*draft.state.refused, _refused(event, task, action))
        draft.state = msgspec.structs.replace(draft.state, refused=refused)


def _forget_refused(draft: Draft, found: Iterable[Occurrence]) -> None:
    """What no longer happens may happen anew."""
    lasting = (
        *(f"{one.event} {one.task} " for one in found),
        *(
            f"{Event.POD_PENDING} {name} "
            for name, pods in draft.observed.tasks.items()
            if pods.at(PodPhase.PENDING)
        ),
    )
    kept = tuple(one for one in draft.state.refused if one.startswith(lasting))
    draft.state = msgspec.structs.replace(draft.state, refused=kept)


def _named(draft: Draft, task: str, indices: IndexSet) -> str:
    """The pods that something is, as the beginning of a sentence."""
    if len(indices) > 1:
        return f"{len(indices)} pods of task {task} are"
    return f"pod {draft.job.metadata.name}-{task}-{indices} is"


def _overdue(timer: Timer, pod: str) -> str:
    """Why a timer's action is done, as the beginning of a sentence."""
    if timer.event == Event.POD_PENDING:
        return f"pod {pod} has been Pending for too long (policy for PodPending)"
    policy = f"exit code {timer.exit_code}" if timer.exit_code else timer.event
    return f"the timeout of the policy for {policy} is over for pod {pod}"


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _obey(draft: Draft, command: Object) -> bool:
    name = command["metadata"]["name"]
    text = command.get("action", "")
    action = _ACTIONS.get(text)
    why = f": {command['reason']}" if command.get("reason") else ""
    if action is None:
        draft.tell("Warning", "CommandIssued", f"Command {name} asks for unknown action {text!r}")
        return False
    draft.tell("Normal", "CommandIssued", f"Command {name} asks for {action}{why}")
    if _start(draft, action, f"a Command asked for {action}{why}"):
        return True
    nothing = f"{action} changes nothing in phase {draft.phase or 'New'}"
    draft.tell("Normal", "CommandIssued", nothing)
    return False


def _start(draft: Draft, action: Action, cause: str, place: Place | None = None) -> bool:
    changed = carry_out(draft, action, cause, place)
    if changed:
        draft.tell("Normal", "ExecuteAction", f"Start to execute action {action}: {draft.message}")
    return changed


def _reply(draft: Draft, one: Occurrence) -> Answer | None:
    if one.only_exit_codes:
        return answer_exit_codes(draft.job.spec, one.task, one.exit_codes)
    return answer(draft.job.spec, one.task, one.event, one.exit_codes)


def _cause(one: Occurrence, exit_code: int | None) -> str:
    policy = f"exit code {exit_code}" if exit_code is not None else str(one.event)
    return f"{one.cause} (policy for {policy})"


def _is_stale(draft: Draft, place: Place) -> bool:
    """Whether an action of this very pass has already dealt with the pod."""
    facts = draft.observed.pods.get((place.task, place.index)) or draft.observed.gone.get(
        (place.task, place.index)
    )
    if facts:
        return not is_current(draft, facts)
    return draft.killed or any(
        target.task == place.task
        and place.retry < target.retry
        and place.index in IndexSet.parse(target.indices)
        for target in draft.state.targets
    )


def _schedule(draft: Draft, one: Occurrence, reply: Answer, now: float) -> None:
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
    _arm(draft, timer, _cause(one, reply.exit_code), reply.delay)


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
            return everything - _running_well(draft, timer)
        case _:
            return everything - pods.at(PodPhase.RUNNING)


def _running_well(draft: Draft, timer: Timer) -> IndexSet:
    """Indices of a timer's pods that run and no longer show the exit code."""
    running = draft.observed.task(timer.task).at(PodPhase.RUNNING)
    return IndexSet.of(
        *(
            index
            for index in IndexSet.parse(timer.indices) & running
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


_ACTIONS = {action.value: action for action in Action}
