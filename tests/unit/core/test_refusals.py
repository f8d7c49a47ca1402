"""What found nothing to act upon is told once while it lasts."""

import pytest
from drafts import NOW, draft, pod

from vcjob.core.actions import Action, Event
from vcjob.core.answering import answer_occurrences
from vcjob.core.facts import PodPhase
from vcjob.core.occurrences import Occurrence, occurrences
from vcjob.core.refusals import forget_refused, is_refused, refuse
from vcjob.core.state import State

ACTION = Action.RESTART_TASK


@pytest.mark.parametrize(
    ("event", "lasts"),
    [
        (Event.UNKNOWN, True),
        (Event.TASK_COMPLETED, True),
        (Event.POD_PENDING, True),
        (Event.POD_FAILED, False),  # each failure is one of its own
    ],
)
def test_only_what_lasts_is_refused(event: Event, lasts: bool) -> None:
    one = draft([])
    assert not is_refused(one, event, "w", ACTION)
    refuse(one, event, "w", ACTION)
    assert is_refused(one, event, "w", ACTION) is lasts
    assert not is_refused(one, event, "w", Action.RESTART_POD)
    assert not is_refused(one, event, "other", ACTION)


def test_what_has_passed_may_happen_anew() -> None:
    one = draft([])
    refuse(one, Event.UNKNOWN, "", ACTION)
    forget_refused(one, [Occurrence(Event.UNKNOWN, "it is")])
    assert is_refused(one, Event.UNKNOWN, "", ACTION)
    forget_refused(one, [])
    assert not is_refused(one, Event.UNKNOWN, "", ACTION)


def test_pods_stay_pending_without_happening_again() -> None:
    pending = draft([pod(0, PodPhase.PENDING)])
    refuse(pending, Event.POD_PENDING, "w", ACTION)
    forget_refused(pending, [])
    assert is_refused(pending, Event.POD_PENDING, "w", ACTION)
    running = draft([pod(0, PodPhase.RUNNING)])
    refuse(running, Event.POD_PENDING, "w", ACTION)
    forget_refused(running, [])
    assert not is_refused(running, Event.POD_PENDING, "w", ACTION)


def test_a_task_without_partitions_is_told_of_once_whatever_happens_to_its_pods() -> None:
    policies = [{"event": "*", "action": "RestartPartition"}]
    state = State()
    told = []
    for restarts in (3, 4, 5):
        one = draft([pod(0, PodPhase.RUNNING, restarts=restarts)], policies, state=state)
        answer_occurrences(one, occurrences(one, "", NOW), NOW)
        answer_occurrences(one, (), NOW)  # a pass in which nothing happens
        told += [(event.type, event.reason, event.message) for event in one.told]
        state = one.state
    [(kind, reason, message)] = told
    assert (kind, reason) == ("Warning", "RestartPartition")
    assert message == (
        "containers of pod lc-w-0 restarted 3 times (policy for TaskFailed), but task w has no "
        "partitionPolicy that says which pods go together: create the Job anew with one, or with "
        "RestartTask in place of RestartPartition"
    )
