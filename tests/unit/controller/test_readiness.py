"""What the readiness probe says, and what is logged of it."""

import pytest

from vcjob.controller.readiness import Readiness


def test_what_is_wrong_is_a_line_each_in_the_order_given_and_notes_follow() -> None:
    readiness = Readiness(("server", "queue"), expected=("server", "certificate"))
    assert not readiness.ready
    readiness.fail("queue", "there is no Queue default")
    readiness.fail("server", "nothing answers")
    readiness.meet("scheduler", "builtin")
    readiness.meet("lease")
    assert readiness.text().splitlines() == [
        "not ready",
        "server: nothing answers",
        "queue: there is no Queue default",
        "certificate: not known yet: whoever was asked has not answered so far",
        "scheduler: builtin",
    ]


def test_once_all_are_met_it_tells_what_it_does() -> None:
    readiness = Readiness(expected=("server",))
    readiness.meet("server")
    assert (readiness.ready, readiness.text()) == (True, "ready\n")
    readiness.doing = "leads"
    assert readiness.text() == "ready: leads\n"


def test_a_note_ends_when_its_condition_is_met_without_one_or_fails() -> None:
    readiness = Readiness()
    readiness.meet("certificate", "expires soon", warn=True)
    assert readiness.text() == "ready\ncertificate: expires soon\n"
    readiness.meet("certificate")
    assert readiness.text() == "ready\n"
    readiness.meet("certificate", "expires soon", warn=True)
    readiness.fail("certificate", "expired")
    assert readiness.of("certificate") == "expired"
    assert readiness.text() == "not ready\ncertificate: expired\n"


def test_a_condition_is_logged_when_it_changes_and_not_while_it_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    readiness = Readiness()
    with caplog.at_level("INFO"):
        readiness.meet("queue")
        for _ in range(3):
            readiness.fail("queue", "gone")
        for _ in range(3):
            readiness.meet("queue")
        for _ in range(3):
            readiness.meet("queue", "nearly gone", warn=True)
    assert [(one.levelname, one.message) for one in caplog.records] == [
        ("WARNING", "queue: gone"),
        ("INFO", "queue: as it should be"),
        ("WARNING", "queue: nearly gone"),
    ]
