"""Admission of Jobs as recorded from genuine Volcano (webhooks and CRD on a real API server).

Each recording holds the Job (or, for an update, the Job before and after), whether it was allowed
end to end, and the spec that was stored.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from reviews import without_what_go_adds

from vcjob.api.defaults import apply_defaults, default_operations
from vcjob.api.problems import errors
from vcjob.core.check import Lookup, check, check_update
from vcjob.plugins.registry import installed_plugins

HERE = Path(__file__).parent
RECORDINGS = {
    path.stem: json.loads(path.read_text()) for path in sorted((HERE / "admission").glob("*.json"))
}
COMPATIBILITY = HERE.parents[1] / "docs" / "compatibility.md"

# The queues that existed when the recordings were made.
LOOKUP = Lookup(
    queues={
        "default": {"status": {"state": "Open"}},
        "parent-q": {"status": {"state": "Open"}},
        "child-q": {"spec": {"parent": "parent-q"}, "status": {"state": "Open"}},
        "closed-q": {"status": {"state": "Closed"}},
    }
)


def flipped_by_compatibility() -> set[str]:
    """Recordings whose full name stands in a row, unless the row says "allowed in both"."""
    rows = [line for line in COMPATIBILITY.read_text().splitlines() if re.match(r"\| \d+ \|", line)]
    last_columns = [row.rstrip(" |").rpartition("|")[2] for row in rows]
    return {
        name
        for column in last_columns
        if "allowed in both" not in column
        for name in RECORDINGS
        if name in column
    }


def is_allowed(recording: dict[str, Any]) -> bool:
    jobs = recording["jobs"]
    if recording["operation"] == "UPDATE":
        return not errors(check_update(jobs[0], jobs[1]))
    return not errors(check(jobs[0], LOOKUP))


def test_all_recordings_are_here() -> None:
    assert len(RECORDINGS) == 90
    assert {recording["operation"] for recording in RECORDINGS.values()} == {"CREATE", "UPDATE"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_allowed_or_refused_as_recorded_unless_a_row_says_otherwise(name: str) -> None:
    recording = RECORDINGS[name]
    expected = recording["allowed"] != (name in flipped_by_compatibility())
    assert is_allowed(recording) == expected


def test_the_only_admission_case_that_compatibility_flips() -> None:
    assert flipped_by_compatibility() == {"039-svc-bad-args-allowed"}


PLUGINS = installed_plugins(third_party=False)
STORED = [name for name, recording in RECORDINGS.items() if "storedSpec" in recording]


@pytest.mark.parametrize("name", STORED)
def test_defaults_give_the_stored_spec(name: str) -> None:
    recording = RECORDINGS[name]
    ours = apply_defaults(recording["jobs"][0], requires=PLUGINS.requires)["spec"]
    if name == "101-template-unknown-field-pruned":  # compatibility.md row 16: kept, not pruned
        assert ours["tasks"][0]["template"]["spec"].pop("noSuchField") == 1
    assert without_what_go_adds(ours) == without_what_go_adds(recording["storedSpec"])


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_patch_leads_to_the_same_object_as_applying_defaults(name: str) -> None:
    job = RECORDINGS[name]["jobs"][0]
    patched = json.loads(json.dumps(job))
    for operation in default_operations(job, requires=PLUGINS.requires):
        *parents, last = operation.path.split("/")[1:]
        target = patched
        for part in parents:
            key = part.replace("~1", "/").replace("~0", "~")
            target = target[int(key)] if isinstance(target, list) else target[key]
        assert (last in target) == (operation.op == "replace")
        target[last] = operation.value
    assert patched == apply_defaults(job, requires=PLUGINS.requires)
    assert default_operations(patched, requires=PLUGINS.requires) == []
