"""What keeps a Job from being made, and which of several such things is told."""

from typing import Any

import pytest

from vcjob.api.kinds import POD
from vcjob.api.types import Job
from vcjob.core.blueprint import Blueprint
from vcjob.core.reasons import MALFORMED, Trouble
from vcjob.core.surroundings import Surroundings, is_unreadable, taken_name, trouble_of
from vcjob.plugins.registry import installed_plugins

PLUGINS = installed_plugins(third_party=False)
LAST = Trouble("Quota", "the quota of namespace default is used up")


def job(**spec: Any) -> Job:
    return Job.of({"metadata": {"name": "j", "namespace": "default"}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "around", "reason", "words"),
    [
        ({}, Surroundings(), None, []),
        ({}, Surroundings(trouble=LAST), "Quota", ["used up"]),
        ({}, Surroundings(queue_exists=False), "QueueNotFound", ['"default"', "spec.queue"]),
        ({"queue": "q"}, Surroundings(queue_exists=False), "QueueNotFound", ['"q"']),
        # A Job that has its PodGroup was in the queue while that was there.
        ({}, Surroundings(queue_exists=False, group={"metadata": {}}), None, []),
        ({}, Surroundings(absent_claims=("data", "more")), "PVCError", ["data, more do not"]),
        ({"plugins": {"svc": ["--no-such-flag"]}}, Surroundings(), "PluginError",
         ["spec.plugins.svc[0]: ", "no-such-flag"]),
        # What lies in the manifest comes before what others may mend, and that before last time's.
        ({"plugins": {"svc": ["--no-such-flag"]}}, Surroundings(queue_exists=False),
         "PluginError", []),
        ({}, Surroundings(queue_exists=False, absent_claims=("data",)), "QueueNotFound", []),
        ({}, Surroundings(absent_claims=("data",), trouble=LAST), "PVCError", []),
    ],
)  # fmt: skip
def test_why_nothing_can_be_made(
    spec: dict[str, Any], around: Surroundings, reason: str | None, words: list[str]
) -> None:
    found = trouble_of(Blueprint(job(**spec), PLUGINS), around)
    assert (found and found.reason) == reason
    assert all(word in found.message for word in words if found)


def test_pods_of_a_job_that_cannot_be_read_stay() -> None:
    malformed = Surroundings(trouble=Trouble(MALFORMED, "spec must be a map"))
    assert is_unreadable(job(), malformed)
    assert not is_unreadable(job(tasks=[{"name": "w", "replicas": 1}]), malformed)
    assert not is_unreadable(job(), Surroundings(trouble=LAST))
    assert not is_unreadable(job(), Surroundings())


@pytest.mark.parametrize(
    ("owner", "left_over", "reason", "says"),
    [
        ({}, False, "NameTaken", "Pod a-b-0 exists and does not belong to this Job: delete or"),
        ("a", False, "NameTaken", "Pod a-b-0 belongs to the Job a: delete that, or give the Job"),
        ("a", True, "WaitingForLeftovers", "left over from the deleted Job a: Pod a-b-0"),
        ("a-b", True, "WaitingForLeftovers", "left over from a deleted Job of the same name"),
    ],
)
def test_whose_a_taken_name_is_and_what_to_do_about_it(
    owner: Any, left_over: bool, reason: str, says: str
) -> None:
    reference = {"kind": "Job", "name": owner} if owner else {}
    trouble = taken_name(POD, "a-b-0", reference, "a-b", left_over=left_over, leaving=False)
    assert trouble.reason == reason
    assert says in trouble.told


def test_nobody_is_asked_to_delete_what_is_being_deleted() -> None:
    trouble = taken_name(POD, "a-b-0", {}, "a-b", left_over=False, leaving=True)
    assert trouble == Trouble(
        "WaitingForLeftovers", "Pod a-b-0 is being deleted: waiting until it is gone"
    )
