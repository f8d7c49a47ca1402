"""Which action answers an event. Source: lifecycle.md section 4."""

from collections.abc import Sequence

import msgspec

from vcjob.api.duration import InvalidDuration, parse_duration
from vcjob.api.policies import ANY_EVENT
from vcjob.api.types import JobSpec, Policy
from vcjob.core.actions import Action, Event

_ACTIONS = {action.value: action for action in Action}
_NO_CHANGE = Action.RESUME_JOB
"""Answering an event with it changes nothing, as the Job is not suspended."""


class Answer(msgspec.Struct, frozen=True):
    """What a policy wants done, after ``delay`` seconds; ``exit_code`` is the one it was for."""

    action: Action
    delay: float = 0.0
    exit_code: int | None = None


def answer(spec: JobSpec, task: str, event: Event, exit_codes: Sequence[int] = ()) -> Answer | None:
    """The answer of the first policy that matches: the task's come before the Job's.

    A policy matches by its events or by its exit code. PodPending is only matched by policies
    with a timeout.
    """
    of_task = next((t.policies for t in spec.tasks if t.name == task), ())
    for policy in (*of_task, *spec.policies):
        found = _matched(policy, event, exit_codes)
        if found:
            return found if found.action is not _NO_CHANGE else None
    return None


def answer_exit_codes(spec: JobSpec, task: str, exit_codes: Sequence[int]) -> Answer | None:
    """The answer of the first policy for one of ``exit_codes``, whatever else has happened.

    For containers that end while their pod goes on (user case P63).
    """
    of_task = next((t.policies for t in spec.tasks if t.name == task), ())
    for policy in (*of_task, *spec.policies):
        found = _for_exit_code(policy, exit_codes)
        if found:
            return found if found.action is not _NO_CHANGE else None
    return None


def _matched(policy: Policy, event: Event, exit_codes: Sequence[int]) -> Answer | None:
    action = _action(policy)
    if action is None:
        return None
    events = (*policy.events, policy.event)
    if (event in events or ANY_EVENT in events) and (
        event is not Event.POD_PENDING or policy.timeout
    ):
        return Answer(action, _delay(policy))
    return _for_exit_code(policy, exit_codes)


def _for_exit_code(policy: Policy, exit_codes: Sequence[int]) -> Answer | None:
    action = _action(policy)
    if action is None or policy.exit_code is None or policy.exit_code not in exit_codes:
        return None
    return Answer(action, _delay(policy), policy.exit_code)


def _action(policy: Policy) -> Action | None:
    """The action of a policy; one that does not exist (admission warns of it) does nothing."""
    return _ACTIONS.get(policy.action)


def _delay(policy: Policy) -> float:
    if not policy.timeout:
        return 0.0
    try:
        return max(parse_duration(policy.timeout).total_seconds(), 0.0)
    except InvalidDuration:
        return 0.0
