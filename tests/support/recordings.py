"""Recordings of genuine Volcano's controller, and the rows of our documentation that name them."""

import json
import re
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference"
RECORDINGS = {
    path.stem: json.loads(path.read_text()) for path in REFERENCE.glob("lifecycle/*.json")
}
COMPATIBILITY = REFERENCE.parents[1] / "docs" / "compatibility.md"


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
