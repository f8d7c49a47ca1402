"""Commands as vcctl makes them: spec cli.md, suspend and resume."""

from vcjob.api.types import Job
from vcjob.cli.orders import order
from vcjob.core.actions import Action


def test_a_command_names_its_job_and_goes_with_it() -> None:
    job = Job.of({"metadata": {"name": "mnist", "namespace": "team", "uid": "u"}})
    made = order(job, Action.ABORT_JOB)
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "mnist", "uid": "u",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    assert made == {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {
            "generateName": "mnist-abortjob-",
            "namespace": "team",
            "ownerReferences": [owner],
        },
        "action": "AbortJob",
        "target": owner,
    }
    assert order(job, Action.RESUME_JOB, "why")["reason"] == "why"
