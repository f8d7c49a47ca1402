"""How long nothing is decided about a gang after somebody else has undone it."""

from vcjob.core.scheduling.places import Gang
from vcjob.core.scheduling.undone import Undone

GANG = Gang("g", "lc", "default", {})


def undo(undone: Undone, now: float) -> int:
    """Admit the gang, and find that somebody has undone it; how often that was."""
    undone.decided("g", "Inqueue")
    return undone.note("g", "Pending", now)


def test_the_first_time_is_forgiven_then_pauses_double_up_to_a_minute() -> None:
    undone, pauses, now = Undone(), [], 1000.0
    assert undo(undone, now) == 1
    assert not undone.is_paused("g")
    for times in range(2, 11):
        assert undo(undone, now) == times
        assert undone.is_paused("g")
        due = undone.next_due()
        assert due is not None
        pauses.append(due - now)
        assert not undone.end_pauses(due - 0.1)
        assert undone.end_pauses(due)
        now = due
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert undo(undone, now + 601) == 1


def test_what_we_change_ourselves_and_phases_that_mean_the_same_are_no_quarrel() -> None:
    undone = Undone()
    assert undone.note("g", "Running", 0.0) == 0, "nothing was decided yet"
    undone.decided("g", "Inqueue")
    assert undone.note("g", "Running", 0.0) == 0
    undone.decided("g", "Pending")
    assert undone.note("g", "", 0.0) == 0
    assert undone.put_off(GANG) is None


def test_a_gang_that_is_put_off_is_told_why_and_until_when() -> None:
    undone = Undone()
    for _ in range(2):
        undo(undone, 1000.0)
    wait = undone.put_off(GANG)
    assert wait is not None
    assert wait.reason == "Undone"
    assert "undid 2 times what was decided about lc" in wait.message
    assert wait.message.endswith("at 1970-01-01T00:16:41Z")
    undone.forget("g")
    assert undone.put_off(GANG) is None
