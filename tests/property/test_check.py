"""The checker answers for whatever JSON stands in place of a Job, and never raises."""

import copy
import json
import re
from typing import Any

import msgspec
from any_jobs import JOBS, JSON, nearly_valid_jobs
from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.api.defaults import apply_defaults, default_operations
from vcjob.api.problems import Problem, errors, format_path
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.job import JOB
from vcjob.api.schema.readable import readable_part
from vcjob.api.types import Job
from vcjob.core.check import Lookup, check, check_update

WRONG_TYPE = re.compile(r" must be (a list|an object|a text|a whole number|true or false|a time)")
LOOKUP = Lookup({"default": {"spec": None}, "a": {"spec": {"parent": "b"}}, "b": {}}, frozenset())


def is_well_formed(problem: Problem) -> bool:
    return bool(problem.message) and isinstance(format_path(problem.path), str)


@given(JSON | JOBS)
@settings(max_examples=400, deadline=None)
def test_the_checker_never_raises_and_changes_nothing(job: Any) -> None:
    before = copy.deepcopy(job)
    problems = check(job, LOOKUP)
    assert all(is_well_formed(problem) for problem in problems)
    msgspec.json.encode(problems)
    assert job == before


@given(JSON | JOBS, JSON | JOBS)
@settings(max_examples=150, deadline=None)
def test_the_update_checker_never_raises(old: Any, new: Any) -> None:
    assert all(is_well_formed(problem) for problem in check_update(old, new))


@given(nearly_valid_jobs())
@settings(deadline=None)
def test_what_is_not_refused_can_be_viewed_and_is_stable(job: Any) -> None:
    """A Job without errors has a typed view, and its defaulted form has the same problems."""
    if errors(check(job)):
        return
    defaulted = apply_defaults(job)
    Job.of(defaulted)
    assert not errors(check(defaulted))
    assert default_operations(defaulted) == []
    assert not errors(check_update(defaulted, copy.deepcopy(defaulted)))


@given(JSON | JOBS)
@settings(deadline=None)
def test_the_readable_part_has_no_wrong_types(job: Any) -> None:
    readable = readable_part(job, JOB)
    Job.of(readable)
    messages = [problem.message for problem in check_fields(readable, JOB)]
    assert not [message for message in messages if WRONG_TYPE.search(message)]
    assert readable_part(readable, JOB) == readable


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_defaults_leave_strange_objects_alone(job: dict[str, Any]) -> None:
    before = json.dumps(job)
    apply_defaults(job)
    assert json.dumps(job) == before
