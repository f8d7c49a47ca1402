"""Which pods a gang will have: of which tasks, how large, and which would be made again."""

from typing import Any

import pytest

from vcjob.api.types import Job, Object
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.job_pods import JobPods, job_uid
from vcjob.core.scheduling.shapes import BILLION
from vcjob.core.state import STATE_KEY, State, encode_state

OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "lc", "uid": "j"}


def task(name: str, replicas: int, cpu: str) -> Object:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": [container]}}}


def job(*tasks: Object, phase: str = "Running", **status: Any) -> Job:
    metadata = {"name": "lc", "namespace": "x", "uid": "j"}
    said = {"state": {"phase": phase}, **status}
    return Job.of({"metadata": metadata, "spec": {"tasks": list(tasks)}, "status": said})


def gang(least: int, owners: list[Object] | None = None, **of_task: int) -> BookedGang:
    metadata = {"name": "lc", "uid": "g", "ownerReferences": [OWNER] if owners is None else owners}
    group = {"metadata": metadata, "spec": {"minMember": least, "minTaskMember": of_task}}
    return BookedGang(group, minimum={"cpu": 6})  # type: ignore[dict-item]


def books(*tasks: Object) -> JobPods:
    jobs = JobPods()
    jobs.enter_job(job(*tasks))
    return jobs


@pytest.mark.parametrize(
    ("least", "of_task", "minimum"),
    [
        (3, {"ps": 1, "worker": 2}, {"ps": 1, "worker": 2}),
        (2, {"ps": 1, "worker": 2}, {"ps": 1, "worker": 1}),
        (2, {"worker": 2}, {"worker": 2}),
    ],
)
def test_the_minimum_is_taken_from_the_tasks_that_count(
    least: int, of_task: dict[str, int], minimum: dict[str, int]
) -> None:
    jobs = books(task("ps", 1, "4"), task("worker", 4, "1"))
    assert jobs.minimum(gang(least, **of_task), {}) == minimum


def test_of_a_group_without_a_job_each_pod_gets_an_equal_part_rounded_up() -> None:
    alone = gang(4, owners=[])
    assert JobPods().minimum(alone, {}) == {"": 4}
    assert JobPods().is_known(alone)
    assert dict(JobPods().shape(alone, "").requests) == {"cpu": 3 * BILLION // 2, "pods": BILLION}
    assert JobPods().minimum(gang(4, owners=[], a=1, b=3), {}) == {"a": 1, "b": 3}


def test_a_job_is_known_from_its_entry_to_its_end_and_its_pods_change_with_it() -> None:
    jobs, its = JobPods(), gang(1, worker=1)
    assert not jobs.is_known(its)
    assert jobs.enter_job(job(task("worker", 2, "1")))
    assert not jobs.enter_job(job(task("worker", 2, "1"), phase="Pending")), "only its status is"
    assert jobs.sizes(its, ["worker"], {"cpu": 4}) == {"worker": 0.25}  # type: ignore[dict-item]
    assert jobs.enter_job(job(task("worker", 2, "2")))
    assert jobs.sizes(its, ["worker"], {"cpu": 4}) == {"worker": 0.5}  # type: ignore[dict-item]
    assert not jobs.enter_job(job(), gone=True)
    assert not jobs.is_known(its)


@pytest.mark.parametrize(
    ("phase", "done", "wanted"),
    [
        ("Running", {}, ["lc-ps-0", "lc-worker-0", "lc-worker-1"]),
        ("Running", {"worker": "1"}, ["lc-ps-0", "lc-worker-0"]),
        ("Aborting", {}, []),
        ("Completed", {}, []),
    ],
)
def test_pods_that_would_be_made_again(phase: str, done: dict[str, str], wanted: list[str]) -> None:
    jobs, its = JobPods(), gang(1, worker=1)
    state = {STATE_KEY: encode_state(State(done=done))}
    tasks = task("ps", 1, "1"), task("worker", 2, "1")
    jobs.enter_job(job(*tasks, phase=phase, controlledResources=state))
    assert [name for name, _ in jobs.wanted(its)] == wanted


def test_only_an_owner_that_is_one_of_our_jobs_counts() -> None:
    other = {**OWNER, "apiVersion": "batch/v1", "uid": "k"}
    assert job_uid(gang(1, owners=[other, OWNER])) == "j"
    assert job_uid(gang(1, owners=[other])) == ""
    assert job_uid(BookedGang()) == ""
