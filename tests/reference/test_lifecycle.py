"""Recordings of genuine Volcano's controller, replayed on ours under a clock of the test's own.

After each step everything there is has to be the same, and so has each status on the way there
(except in steps that varied when they were recorded). What is different has to be so by a row of
docs/compatibility.md that names the recording.
"""

import asyncio
import json
from pathlib import Path

import pytest
from recordings import RECORDINGS, ROWS, may_change
from replay import Replay

HERE = Path(__file__).parent


def test_every_recording_is_there() -> None:
    assert len(RECORDINGS) == 34


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_what_happens_is_what_volcano_does(name: str) -> None:
    """Every difference has its row, and every row that names the recording its difference."""
    replay = Replay(RECORDINGS[name])
    found = asyncio.run(asyncio.wait_for(replay.differences(), 30))
    rows = ROWS.get(name[:2], set())
    unexplained = []
    needed = set()
    for step, what, theirs, ours in found:
        explaining = {row for row in rows if may_change(row, what)}
        needed |= explaining
        if not explaining:
            unexplained.append(f"step {step}: {what} is {ours}, of Volcano {theirs}")
    for step, field, theirs, ours in replay.different_courses():
        explaining = {row for row in rows if may_change(row, f"job.{field}")}
        needed |= explaining
        if not explaining:
            unexplained.append(f"through step {step}: {field} is {ours}, of Volcano {theirs}")
    assert not unexplained
    assert rows == needed, "docs/compatibility.md names the recording without need"


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_counters_are_those_of_the_pods_after_each_step(name: str) -> None:
    """docs/compatibility.md row 8: of Volcano they fall to zero, or lag behind."""
    replay = Replay(RECORDINGS[name])
    asyncio.run(asyncio.wait_for(replay.differences(), 30))
    assert replay.counted
    for shown, counted in replay.counted:
        assert shown == counted


def test_events_tell_what_we_expect() -> None:
    """Volcano's say less: these are our own words, of everything a user would ask about."""
    told: dict[str, list[str]] = {}
    for name in sorted(RECORDINGS):
        replay = Replay(RECORDINGS[name])
        asyncio.run(asyncio.wait_for(replay.differences(), 30))
        told[name] = sorted(replay.told)
    assert told == json.loads((HERE / "lifecycle-events.json").read_text())
