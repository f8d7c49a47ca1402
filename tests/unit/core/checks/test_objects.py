"""Which objects a manifest may hold, and what is said of those that it may not."""

from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, JOB
from vcjob.api.problems import format_path
from vcjob.core.checks.objects import check_kind, check_object, kind_of


def test_kinds_are_told_by_group_version_and_name() -> None:
    assert kind_of({"apiVersion": "v1", "kind": "ConfigMap"}) == CONFIG_MAP
    assert kind_of({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}) == JOB
    assert list(check_kind({"apiVersion": "v1", "kind": "ConfigMap"})) == []


@pytest.mark.parametrize(
    ("obj", "path", "message"),
    [
        ({}, "apiVersion", 'the object lacks the field "apiVersion"'),
        ({"apiVersion": ""}, "apiVersion",
         'the object has an empty text as the field "apiVersion"'),
        ({"apiVersion": 1, "kind": "Job"}, "apiVersion",
         'the object has the number 1 as the field "apiVersion"'),
        ({"apiVersion": "v1"}, "kind", 'the object lacks the field "kind"'),
        ({"apiVersion": "v1", "kind": ["Job"]}, "kind", 'the field "kind"'),
    ],
)  # fmt: skip
def test_an_object_without_a_kind(obj: dict[str, Any], path: str, message: str) -> None:
    assert kind_of(obj) is None
    (problem,) = check_kind(obj)
    assert format_path(problem.path) == path
    assert message in problem.message
    assert problem.hint == "a Job has apiVersion: batch.volcano.sh/v1alpha1 and kind: Job"


def test_an_object_without_an_api_version_is_told_that_of_its_kind() -> None:
    (problem,) = check_kind({"kind": "ConfigMap"})
    assert problem.hint == "a ConfigMap has apiVersion: v1 and kind: ConfigMap"


@pytest.mark.parametrize(
    ("api_version", "kind", "hint"),
    [
        ("batch/v1", "Job", "a Volcano Job has apiVersion: batch.volcano.sh/v1alpha1"),
        ("v2", "ConfigMap", "ConfigMap has apiVersion: v1"),
        ("v1", "Pod", "objects of this kind are made from Jobs; write a Job"),
        ("v1", "ConfigMpa", "did you mean ConfigMap (v1)?"),
        ("apps/v1", "Deployment", "vcjob takes "),
    ],
)
def test_a_kind_that_is_of_no_use_draws_what_to_write_instead(
    api_version: str, kind: str, hint: str
) -> None:
    (problem,) = check_kind({"apiVersion": api_version, "kind": kind})
    assert problem.message == f"vcjob has no use for an object of the kind {api_version} {kind}"
    assert hint in problem.hint


def test_a_kind_of_any_length_is_shown_in_part() -> None:
    (problem,) = check_kind({"apiVersion": "v1", "kind": "x" * 10_000})
    assert len(problem.message) < 200


def test_an_object_needs_a_name_and_its_fields_are_checked() -> None:
    whole: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert check_object(whole, CONFIG_MAP) == []
    found = check_object({**whole, "metadata": {}, "data": {"a": 1}}, CONFIG_MAP)
    assert {format_path(problem.path) for problem in found} == {"data.a", "metadata.name"}
