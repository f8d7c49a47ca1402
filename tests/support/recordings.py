"""Recordings of genuine Volcano's controller, and which differences from them are on purpose."""

import json
import re
from pathlib import Path

from replay import COUNTERS

REFERENCE = Path(__file__).parents[1] / "reference"
RECORDINGS = {
    path.stem: json.loads(path.read_text()) for path in REFERENCE.glob("lifecycle/*.json")
}
COMPATIBILITY = REFERENCE.parents[1] / "docs" / "compatibility.md"

PLUGIN_OBJECTS = frozenset({"services", "configmaps", "networkpolicies", "secrets",
                            "svcConfigMapData", "job.controlledResources"})  # fmt: skip
COUNTED = frozenset({*(f"job.{name}" for name in COUNTERS), "job.taskStatusCount"})
EVERYTHING = None

# What the rows of docs/compatibility.md may change in the recordings that they name.
CHANGED_BY_ROW: dict[int, frozenset[str] | None] = {
    1: PLUGIN_OBJECTS,
    2: EVERYTHING,
    4: EVERYTHING,
    5: frozenset({"job.retryCount", "pods.jobRetryCount"}),
    8: frozenset({*COUNTED, "job.controlledResources"}),
    18: frozenset({"job.version", "pods.jobVersion"}),
    19: EVERYTHING,
    20: frozenset({"pods"}),
    23: frozenset({*COUNTED, "job.runningDuration", "pods", "pods.phase"}),
}  # fmt: skip


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


def may_change(row: int, what: str) -> bool:
    """Whether a row of docs/compatibility.md may change a part of what there is."""
    fields = CHANGED_BY_ROW[row]
    return fields is None or what in fields
