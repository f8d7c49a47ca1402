"""Where the replayed recordings differ from genuine Volcano, each difference with both values.

``tests/reference/lifecycle-differences.json`` has them: recording, step, what differs, and there
Volcano's value, ours, and the rows of docs/compatibility.md that are the reason. After a change on
purpose it is written anew with ``python tests/support/pinned.py``. That keeps the rows of what
differed before and names none for what is new: a person has to, or the tests fail.
"""

import asyncio
import functools
import json
from typing import Any

import msgspec
from recordings import RECORDINGS, REFERENCE, ROWS
from replay import Replay

PINNED_FILE = REFERENCE / "lifecycle-differences.json"
_SECONDS_FOR_ONE = 30


class PinnedDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One difference; ``rows`` are those of docs/compatibility.md that it comes from."""

    rows: tuple[int, ...]
    volcano: Any
    ours: Any


Pinned = dict[str, dict[str, PinnedDifference]]
"""By number of the step and what differs in it."""


def pinned() -> dict[str, Pinned]:
    """What the file says, by the name of the recording."""
    return msgspec.json.decode(PINNED_FILE.read_bytes(), type=dict[str, Pinned])


@functools.cache
def replayed(name: str) -> tuple[Replay, Pinned]:
    """Replay a recording, and tell where it differs; with no rows. Not to be changed."""
    replay = Replay(RECORDINGS[name])
    found = asyncio.run(asyncio.wait_for(replay.differences(), _SECONDS_FOR_ONE))
    differences: Pinned = {}
    for step, what, theirs, ours in sorted(
        [*found, *replay.different_courses()], key=lambda one: one[:2]
    ):
        differences.setdefault(str(step), {})[what] = PinnedDifference((), theirs, ours)
    return replay, differences


def faults(name: str, expected: Pinned, found: Pinned) -> list[str]:
    """How what was found is not what is expected, or has no row, or a row has no difference."""
    problems = []
    rows: set[int] = set()
    for step, what in sorted(_places(expected) | _places(found)):
        one = expected.get(step, {}).get(what)
        other = found.get(step, {}).get(what)
        where = f"{name} step {step} {what}"
        if one is None:
            assert other
            problems.append(f"{where}: ours {other.ours}, of Volcano {other.volcano}; not pinned")
            continue
        if other is None:
            problems.append(f"{where}: no longer different, ours was {one.ours}")
        elif (one.volcano, one.ours) != (other.volcano, other.ours):
            problems.append(f"{where}: {other.volcano} -> {other.ours}, "
                            f"pinned {one.volcano} -> {one.ours}")  # fmt: skip
        if not one.rows:
            problems.append(f"{where}: no row of docs/compatibility.md is named for it")
        rows.update(one.rows)
    named = ROWS.get(name[:2], set())
    problems += [f"{name}: row {row} does not name this recording" for row in sorted(rows - named)]
    problems += [f"{name}: row {row} names it without need" for row in sorted(named - rows)]
    return problems


def _places(differences: Pinned) -> set[tuple[str, str]]:
    return {(step, what) for step, by_field in differences.items() for what in by_field}


def write_anew() -> None:
    """Write the file as it is now, with the rows that are known."""
    known = pinned() if PINNED_FILE.exists() else {}
    text = []
    for name in sorted(RECORDINGS):
        steps = []
        for step, by_field in replayed(name)[1].items():
            lines = []
            for what, one in by_field.items():
                before = known.get(name, {}).get(step, {}).get(what)
                value = {"rows": before.rows if before else (), "volcano": one.volcano}
                both = json.dumps(value | {"ours": one.ours}, ensure_ascii=False)
                lines.append(f"      {json.dumps(what)}: {both}")
            steps.append(f'    "{step}": {{\n' + ",\n".join(lines) + "\n    }")
        if steps:
            text.append(f'  "{name}": {{\n' + ",\n".join(steps) + "\n  }")
    PINNED_FILE.write_text("{\n" + ",\n".join(text) + "\n}\n")


if __name__ == "__main__":
    write_anew()
