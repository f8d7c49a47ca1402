"""Recordings of genuine Volcano's controller, replayed on ours under a clock of the test's own.

After each step everything there is has to be the same, and so has each whole status on the way
there, in order (except in steps that varied when they were recorded). What is different is pinned
by value in lifecycle-differences.json, each with the rows of docs/compatibility.md that explain it;
pinned.py says how that file is written anew.
"""

import json
from pathlib import Path

import pytest
from pinned import faults, pinned, replayed
from recordings import RECORDINGS

HERE = Path(__file__).parent
PINNED = pinned()


def test_every_recording_is_there() -> None:
    assert len(RECORDINGS) == 34


def test_differences_are_pinned_for_recordings_only() -> None:
    assert PINNED.keys() <= RECORDINGS.keys()


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_what_happens_is_what_volcano_does(name: str) -> None:
    """Every difference is a pinned one with its row, and every row that names the recording one."""
    _, found = replayed(name)
    assert not faults(name, PINNED.get(name, {}), found)


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_counters_are_those_of_the_pods(name: str) -> None:
    """docs/compatibility.md row 8: of Volcano they fall to zero, or lag behind.

    After a step they are those of now, in each status those of a moment before it was written.
    """
    replay, _ = replayed(name)
    assert replay.counted
    for shown, counted in replay.counted:
        assert shown == counted
    assert not list(replay.recount.never_true())


def test_events_tell_what_we_expect() -> None:
    """Volcano's say less: these are our own words, of everything a user would ask about."""
    told: dict[str, list[str]] = {}
    for name in sorted(RECORDINGS):
        replay, _ = replayed(name)
        told[name] = sorted(replay.told)
    assert told == json.loads((HERE / "lifecycle-events.json").read_text())
