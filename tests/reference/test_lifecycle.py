"""Recordings of genuine Volcano's controller, replayed on ours under a clock of the test's own.

After each step everything there is has to be the same, and so have the phases in between. What is
different has to be so by a row of docs/compatibility.md that names the recording.
"""

import asyncio
import json
import re
from pathlib import Path

import pytest
from replay import COUNTERS, Replay

from vcjob.plugins.registry import installed_plugins

HERE = Path(__file__).parent
RECORDINGS = {path.stem: json.loads(path.read_text()) for path in HERE.glob("lifecycle/*.json")}
COMPATIBILITY = HERE.parents[1] / "docs" / "compatibility.md"

PLUGIN_OBJECTS = frozenset({"services", "configmaps", "networkpolicies", "secrets",
                            "svcConfigMapData", "job.controlledResources"})  # fmt: skip
EVERYTHING = None

# What the rows of docs/compatibility.md may change in the recordings that they name.
CHANGED_BY_ROW: dict[int, frozenset[str] | None] = {
    1: PLUGIN_OBJECTS,
    2: EVERYTHING,
    4: EVERYTHING,
    5: frozenset({"job.retryCount", "pods.jobRetryCount"}),
    8: frozenset({*(f"job.{name}" for name in COUNTERS), "job.taskStatusCount",
                  "job.controlledResources", "sequence"}),
    18: frozenset({"job.version", "pods.jobVersion"}),
    19: EVERYTHING,
    20: frozenset({"pods"}),
}  # fmt: skip

# Plugins of later versions: the recording is replayed without them.
NOT_YET = {"02-podfailed-restartjob": {"ssh"}, "20-job-deleted": {"ssh"}}


def rows_by_recording() -> dict[str, set[int]]:
    """The rows of docs/compatibility.md that name each recording, by its number."""
    rows: dict[str, set[int]] = {}
    for line in COMPATIBILITY.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        named = re.search(r"lifecycle: ((?:\d\d[^\d;|,]*(?:, )?)+)", cells[-1])
        if named and cells[0].isdigit():
            for number in re.findall(r"\b\d\d\b", named[1]):
                rows.setdefault(number, set()).add(int(cells[0]))
    return rows


ROWS = rows_by_recording()


def test_every_recording_is_there() -> None:
    assert len(RECORDINGS) == 34


def test_only_these_recordings_are_replayed_without_a_plugin() -> None:
    there = set(installed_plugins(third_party=False).names())
    missing = {name: set(one["spec"]["plugins"]) - there for name, one in RECORDINGS.items()}
    assert {name: plugins for name, plugins in missing.items() if plugins} == NOT_YET


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_what_happens_is_what_volcano_does(name: str) -> None:
    """Every difference has its row, and every row that names the recording its difference."""
    leave_out = frozenset(NOT_YET.get(name, ()))
    replay = Replay(RECORDINGS[name])
    found = asyncio.run(asyncio.wait_for(replay.differences(leave_out), 30))
    rows = ROWS.get(name[:2], set())
    unexplained = []
    needed = set()
    for step, what, theirs, ours in found:
        if what == "secrets" and leave_out:
            continue
        if what == "job.controlledResources":
            theirs = {key: mark for key, mark in theirs.items() if mark not in leave_out}
            if theirs == ours:
                continue
        explaining = {
            row for row in rows if (fields := CHANGED_BY_ROW[row]) is None or what in fields
        }
        needed |= explaining
        if not explaining:
            unexplained.append(f"step {step}: {what} is {ours}, of Volcano {theirs}")
    assert not unexplained
    assert rows == needed, "docs/compatibility.md names the recording without need"
