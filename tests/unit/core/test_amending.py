"""What is written into a Job itself."""

from typing import Any

import pytest

from vcjob.api.names import JOB_FORWARDING, claim_name
from vcjob.api.types import Job
from vcjob.core.amending import amendment
from vcjob.core.claims import claims_of

SPEC = {"resources": {"requests": {"storage": "1Gi"}}}
MADE = claim_name("lc", "u", 0)


@pytest.mark.parametrize(
    ("volumes", "names"),
    [
        ([], None),
        ([{"mountPath": "/data", "volumeClaimName": "theirs"}], None),
        ([{"mountPath": "/data", "volumeClaim": SPEC}], [MADE]),
        ([{"mountPath": "/data", "volumeClaim": SPEC, "volumeClaimName": "kept"}], None),
        (
            [
                {"mountPath": "/a", "volumeClaim": SPEC},
                {"mountPath": "/b", "volumeClaimName": "theirs"},
            ],
            [MADE, "theirs"],
        ),
    ],
)
def test_the_names_of_claims_that_are_made_are_written_once(volumes: Any, names: Any) -> None:
    job = Job.of({"metadata": {"name": "lc", "uid": "u"}, "spec": {"volumes": volumes}})
    patch = amendment(job, claims_of(job), forwarding=False)
    if names is None:
        assert patch is None
        return
    assert patch is not None
    written = patch["spec"]["volumes"]
    assert [one["volumeClaimName"] for one in written] == names
    assert [one["mountPath"] for one in written] == [one["mountPath"] for one in volumes]
    assert [one.get("volumeClaim") for one in written] == [
        one.get("volumeClaim") for one in volumes
    ]
    again = Job.of({"metadata": {"name": "lc", "uid": "u"}, "spec": patch["spec"]})
    assert amendment(again, claims_of(again), forwarding=False) is None


def test_a_job_of_a_queue_on_several_clusters_is_marked_once() -> None:
    job = Job.of({"metadata": {"name": "lc"}})
    patch = amendment(job, (), forwarding=True)
    assert patch == {"metadata": {"annotations": {JOB_FORWARDING: "true"}}}
    marked = Job.of({"metadata": {"name": "lc", **patch["metadata"]}})
    assert amendment(marked, (), forwarding=True) is None
    assert amendment(job, (), forwarding=False) is None
