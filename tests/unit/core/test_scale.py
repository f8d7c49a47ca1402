"""Scaling a Job before it runs."""

import copy
from typing import Any

import pytest

from vcjob.api.types import Object
from vcjob.core.scale import InvalidScaling, overruled, parse_scalings, scale, task_names


def job(min_available: int | None = None, **tasks: Any) -> Object:
    spec: Object = {"tasks": [{"name": name, **fields} for name, fields in tasks.items()]}
    if min_available is not None:
        spec["minAvailable"] = min_available
    return {"metadata": {"name": "lc"}, "spec": spec}


PS = {"replicas": 1}


def test_replicas_and_both_minimums_follow_and_each_change_is_said() -> None:
    manifest = job(6, ps=PS, worker={"replicas": 5, "minAvailable": 5})
    before = copy.deepcopy(manifest)
    scaled = scale(manifest, {"worker": 2})
    assert scaled.job == job(3, ps=PS, worker={"replicas": 2, "minAvailable": 2})
    assert scaled.changes == (
        'task "worker" has 2 instead of 5 replicas',
        'task "worker" starts with 2 instead of 5 (minAvailable)',
        "the Job starts with 3 instead of 6 pods (minAvailable)",
    )
    assert manifest == before


@pytest.mark.parametrize(
    ("before", "replicas", "after"),
    [
        (job(ps=PS, worker={"replicas": 5}), 2, job(ps=PS, worker={"replicas": 2})),
        (job(2, ps=PS, worker={"replicas": 5}), 2, job(2, ps=PS, worker={"replicas": 2})),
        (job(2, worker={"replicas": 2}), 4, job(2, worker={"replicas": 4})),
        (
            job(1, worker={"replicas": 4, "minAvailable": 1}),
            2,
            job(1, worker={"replicas": 2, "minAvailable": 1}),
        ),
        (
            job(1, worker={"replicas": 1, "minAvailable": 1}),
            0,
            job(0, worker={"replicas": 0, "minAvailable": 0}),
        ),
        (job(worker={}), 3, job(worker={"replicas": 3})),
    ],
)
def test_minimums_that_can_still_be_reached_stay(
    before: Object, replicas: int, after: Object
) -> None:
    assert scale(before, {"worker": replicas}).job == after


def test_nothing_to_change_changes_nothing() -> None:
    manifest = job(9, worker={"replicas": 2, "minAvailable": 3})
    scaled = scale(manifest, {"worker": 2})
    assert scaled.job is manifest
    assert scaled.changes == ()


def test_a_task_without_a_name_is_called_as_defaulting_calls_it() -> None:
    manifest: Object = {"spec": {"tasks": [{"replicas": 1}, {"name": "ps"}]}}
    assert task_names(manifest) == ["default0", "ps"]
    assert scale(manifest, {"default0": 3}).job["spec"]["tasks"][0] == {"replicas": 3}


@pytest.mark.parametrize(
    ("name", "hint"), [("wroker", "worker"), ("evaluator", "known here: ps, worker")]
)
def test_an_unknown_task_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(InvalidScaling, match=f'no task "{name}".*{hint}'):
        scale(job(ps=PS, worker={"replicas": 5}), {name: 1})


@pytest.mark.parametrize("manifest", [{}, {"spec": None}, {"spec": {"tasks": "many"}}])
def test_what_is_no_job_has_no_tasks(manifest: Object) -> None:
    with pytest.raises(InvalidScaling, match="it has 0 tasks"):
        scale(manifest, {"worker": 1})


def test_scalings_are_read_and_the_last_one_of_a_task_counts() -> None:
    texts = ["worker=2", "ps=0", "worker=3", "ps=0"]
    assert parse_scalings(texts) == {"worker": 3, "ps": 0}
    assert overruled(texts) == ["of worker=2, worker=3 the last one counts"]


@pytest.mark.parametrize("text", ["worker", "worker=", "=2", "worker=two", "worker=-1",
                                  "worker=99999999999", "worker=1.5", "worker=٣"])  # fmt: skip
def test_what_is_no_scaling_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidScaling, match="worker=2"):
        parse_scalings([text])
