"""Webhooks answer whatever is sent, and their patches are the defaults, no more and no less."""

import json
import re
from typing import Any

import msgspec
import pytest
from any_jobs import JOBS, JSON, nearly_valid_jobs
from hypothesis import given, settings
from hypothesis import strategies as st
from reviews import NOTHING_KNOWN, RULES, patch_of, patched, respond, review

from vcjob.admission.reviewing import PATHS, NotAReview, answer, read_request
from vcjob.api.defaults import apply_defaults
from vcjob.api.problems import errors
from vcjob.core.check import check

NO_JSON = re.compile(r"-?\bInfinity\b(?=[,\]}]|$)")


def as_sent(value: Any) -> Any:
    """The value as it comes out of a request: YAML knows numbers that JSON does not."""
    return msgspec.json.decode(NO_JSON.sub("null", json.dumps(value)))


@given(nearly_valid_jobs() | JOBS)
@settings(max_examples=300, deadline=None)
def test_the_patched_object_is_the_defaulted_one(job: Any) -> None:
    job = as_sent(job) if isinstance(job, dict) else {}
    response = respond("/jobs/mutate", review(job))
    expected = apply_defaults(job, requires=RULES.plugins.requires)
    assert patched(job, response) == expected
    assert patch_of(respond("/jobs/mutate", review(expected))) == []


@given(nearly_valid_jobs())
@settings(max_examples=100, deadline=None)
def test_what_the_checker_refuses_the_webhook_refuses(job: Any) -> None:
    job = as_sent(job)
    mutated = patched(job, respond("/jobs/mutate", review(job)))
    allowed = respond("/jobs/validate", review(mutated))["allowed"]
    assert allowed == (not errors(check(job, None, RULES.plugins)))


@given(JSON | JOBS, JSON | JOBS, st.sampled_from(PATHS), st.sampled_from(["CREATE", "UPDATE"]))
@settings(max_examples=200, deadline=None)
def test_every_question_gets_an_answer(new: Any, old: Any, path: str, operation: str) -> None:
    question = review(as_sent(new), operation, old=as_sent(old))
    request = read_request(json.dumps(question).encode())
    assert isinstance(answer(path, request, RULES, NOTHING_KNOWN)["response"]["allowed"], bool)


@given(JSON | st.builds(lambda request: {**review({}), "request": request}, JSON))
@settings(max_examples=200, deadline=None)
def test_what_is_no_question_is_refused(body: Any) -> None:
    with pytest.raises(NotAReview):
        read_request(json.dumps(as_sent(body)).encode())
