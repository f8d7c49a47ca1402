"""Reading Jobs: what can be read of them, however much is wrong."""

from typing import Any

import pytest

from vcjob.api.types import Object
from vcjob.controller.reading import read_job, read_status

SPEC: Object = {"minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2}]}
OLD: Object = {"metadata": {"name": "lc", "uid": "1"}, "spec": SPEC}


@pytest.mark.parametrize(
    "status", [{}, {"state": {"phase": "Running"}, "running": 2}, {"running": "many"}, None, 7]
)
def test_a_new_status_is_read_as_the_whole_job_would_be(status: Any) -> None:
    before, _ = read_job(OLD)
    metadata = {**OLD["metadata"], "annotations": {"n": "1"}}
    changed = {"metadata": metadata, "spec": SPEC, "status": status}
    assert read_status(changed, before) == read_job(changed)[0]


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ([{"name": "w", "replicas": -1}], "spec.tasks[0]: replicas is -1"),
        ([{"name": "w", "replicas": 10**12}], "replicas is 1000000000000"),
        ([{"name": "w"}, {"name": "x"}, {"name": "w"}], 'spec.tasks[2]: there is another task "w"'),
    ],
)
def test_tasks_that_nobody_could_have_pods_of_are_told(tasks: Any, says: str) -> None:
    job, wrong = read_job({**OLD, "spec": {"tasks": tasks}})
    assert says in wrong
    assert all(0 <= task.replicas <= 10_000_000 for task in job.spec.tasks)


@pytest.mark.parametrize("spec", [None, [], {"tasks": "none"}, {"minAvailable": "two"}])
def test_a_spec_that_cannot_be_read_counts_as_empty_and_is_told(spec: Any) -> None:
    job, wrong = read_job({**OLD, "spec": spec, "status": {"version": 3}})
    assert wrong
    assert (job.metadata.name, job.spec.tasks, job.status.version) == ("lc", (), 3)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (7, "spec: spec must be an object, but is the number 7"),
        ({"tasks": "none"}, "spec.tasks: tasks must be a list"),
        ({"plugins": {"svc": "--x"}}, "spec.plugins.svc: svc must be a list"),
        ({"plugins": {"svc": [7]}}, "spec.plugins.svc[0]: svc[0] must be a text, but is the num"),
        ({"tasks": [{"name": "w", "replicas": "2"}]}, "spec.tasks[0].replicas: replicas must be"),
        ({"tasks": [{"template": []}]}, "spec.tasks[0].template: template must be an object"),
    ],
)
def test_what_cannot_be_read_is_told_as_admission_tells_it(spec: Any, says: str) -> None:
    _, wrong = read_job({**OLD, "spec": spec})
    assert wrong.startswith(f"the Job cannot be read: {says}")
