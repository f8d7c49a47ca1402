"""The webhooks' own answers as recorded from genuine Volcano, played as an API server asks.

``webhooks`` in each recording: what the mutating and the validating webhook said, and the spec that
the former's patch led to (the protocol of ports, a default of the schema, left out).
"""

import json
import re
from pathlib import Path

import pytest
from reviews import RULES, patch_of, patched, respond, review, without_what_go_adds

from vcjob.admission.reviewing import Known
from vcjob.core.check import Lookup

HERE = Path(__file__).parent
RECORDINGS = {
    path.stem: json.loads(path.read_text()) for path in sorted((HERE / "admission").glob("*.json"))
}
CREATED = [name for name, one in RECORDINGS.items() if one["operation"] == "CREATE"]
# The queues that existed when the recordings were made.
KNOWN = Known(
    Lookup(
        queues={
            "default": {"status": {"state": "Open"}},
            "parent-q": {"status": {"state": "Open"}},
            "child-q": {"spec": {"parent": "parent-q"}, "status": {"state": "Open"}},
            "closed-q": {"status": {"state": "Closed"}},
        }
    )
)
REFUSED_BY_COMPATIBILITY = {"039-svc-bad-args-allowed"}  # row 3


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_request_is_admitted_or_denied_as_recorded(name: str) -> None:
    recording = RECORDINGS[name]
    first, last = recording["jobs"][0], recording["jobs"][-1]
    if recording["operation"] == "CREATE":
        mutated = patched(first, respond("/jobs/mutate", review(first), RULES, KNOWN))
        response = respond("/jobs/validate", review(mutated), RULES, KNOWN)
    else:
        question = review(last, "UPDATE", old=first)
        response = respond("/jobs/validate", question, RULES, KNOWN)
    expected = recording["allowed"] and name not in REFUSED_BY_COMPATIBILITY
    assert response["allowed"] == expected, response
    if not expected:
        status = response["status"]
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert len(status["details"]["causes"]) >= 1
        assert re.match(r"\d+ problems: \(1\) |\w", status["message"])


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_volcanos_webhook_denies_ours_denies(name: str) -> None:
    """Ours denies more: what the schema of the CRD would refuse before it is asked."""
    recording = RECORDINGS[name]
    if not recording["webhooks"]["validate"]:
        assert not recording["allowed"]
    elif not recording["allowed"]:
        assert recording["message"].startswith("Job.batch.volcano.sh "), "the schema refused it"


@pytest.mark.parametrize("name", CREATED)
def test_the_patch_leads_to_the_recorded_spec(name: str) -> None:
    job = RECORDINGS[name]["jobs"][0]
    response = respond("/jobs/mutate", review(job), RULES, KNOWN)
    assert response["allowed"]
    mutated = patched(job, response)
    if "mutatedSpec" not in RECORDINGS[name]["webhooks"]:
        # Volcano's webhook could not read the Job, which the schema would have refused anyway.
        assert not RECORDINGS[name]["allowed"]
        return
    ours = mutated["spec"]
    if name == "101-template-unknown-field-pruned":  # compatibility.md row 16: kept, not pruned
        assert ours["tasks"][0]["template"]["spec"].pop("noSuchField") == 1
    expected = RECORDINGS[name]["webhooks"]["mutatedSpec"]
    assert without_what_go_adds(ours) == without_what_go_adds(expected)


@pytest.mark.parametrize("name", CREATED)
def test_patches_are_precise(name: str) -> None:
    """No operation touches a value that it does not change, and a second time there is none."""
    job = RECORDINGS[name]["jobs"][0]
    response = respond("/jobs/mutate", review(job), RULES, KNOWN)
    paths = [operation["path"] for operation in patch_of(response)]
    assert "/spec/tasks" not in paths
    assert len(paths) == len(set(paths))
    assert not any(one.startswith(f"{other}/") for one in paths for other in paths)
    again = respond("/jobs/mutate", review(patched(job, response)), RULES, KNOWN)
    assert patch_of(again) == []
