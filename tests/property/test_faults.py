"""One fault at one write, anywhere in a Job's life: what comes of the Job stays the same.

The recordings are the lives. A crash after each prefix of each plan is one of the faults.
"""

import asyncio
import json
from pathlib import Path

import pytest
from faults import ONE_OBJECT, Fault
from replay import Replay

RECORDINGS = sorted((Path(__file__).parents[1] / "reference" / "lifecycle").glob("*.json"))
STRIDE = 5
"""Without ``--long`` faults other than crashes happen at every fifth write only."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_fault_at_any_write_changes_nothing_in_the_end(path: Path, is_long: bool) -> None:
    recording = json.loads(path.read_text())
    undisturbed = Replay(recording)
    expected = asyncio.run(undisturbed.differences())
    for fault in ONE_OBJECT:
        stride = 1 if is_long or fault is Fault.CRASH_AFTER else STRIDE
        for at in range(0, undisturbed.writes, stride):
            disturbed = Replay(recording, fault, at)
            found = asyncio.run(asyncio.wait_for(disturbed.differences(), 30))
            assert _lasting(found, path) == _lasting(expected, path), f"{fault} at write {at}"


def _lasting(differences: list[tuple[int, str, object, object]], path: Path) -> list[str]:
    """Differences of what there is after each step."""
    passing = set()
    if path.stem.startswith("30-"):
        passing.add("pods")  # a quota lets one pod pass: which one is a matter of timing
    return sorted(json.dumps(one, sort_keys=True) for one in differences if one[1] not in passing)
