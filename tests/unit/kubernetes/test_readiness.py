"""What the readiness probe says, and what is logged of it."""

import pytest

from vcjob.kubernetes.readiness import Condition, Readiness


def test_each_condition_that_is_not_met_is_one_line_in_the_order_of_dependence() -> None:
    readiness = Readiness()
    assert not readiness.ready
    readiness.fail(Condition.QUEUE, "there is no Queue default")
    readiness.fail(Condition.SERVER, "nothing answers")
    readiness.notes["scheduler"] = "builtin"
    assert readiness.text() == (
        "not ready\nserver: nothing answers\nqueue: there is no Queue default\nscheduler: builtin\n"
    )


def test_once_all_are_met_it_tells_what_it_does() -> None:
    readiness = Readiness()
    readiness.meet(Condition.SERVER)
    readiness.doing = "leads"
    assert (readiness.ready, readiness.text()) == (True, "ready: leads\n")


def test_a_condition_is_logged_when_it_changes_and_not_while_it_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    readiness = Readiness()
    with caplog.at_level("INFO"):
        for _ in range(3):
            readiness.fail(Condition.QUEUE, "gone")
        for _ in range(3):
            readiness.meet(Condition.QUEUE)
    assert caplog.messages == ["queue: gone", "queue: as it should be"]
