"""What found nothing to act upon is told once while it lasts."""

import pytest
from drafts import draft, pod

from vcjob.core.actions import Action, Event
from vcjob.core.facts import PodPhase
from vcjob.core.occurrences import Occurrence
from vcjob.core.refusals import forget_refused, is_refused, refuse

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
