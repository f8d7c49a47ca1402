"""What is asked of retries and means something else (user case P57)."""

from collections.abc import Iterator
from typing import Any

from vcjob.api.problems import Problem
from vcjob.core.actions import TARGETED, Action
from vcjob.core.checks.subject import Subject
from vcjob.core.retries import max_retry

_RESTARTS = frozenset({*TARGETED, Action.RESTART_JOB})


def check_retries(written: Any, subject: Subject) -> Iterator[Problem]:
    """A warning where 0 retries are asked for, which counts as the default.

    ``written`` is the Job before its defaults are filled in.
    """
    spec = written.get("spec") if isinstance(written, dict) else None
    asked = spec.get("maxRetry") if isinstance(spec, dict) else None
    if isinstance(asked, bool) or asked != 0 or not _restarts(subject):
        return
    most = max_retry(subject.job)
    message = f"maxRetry 0 counts as {most}: the Job is tried {most} times"
    yield Problem(message, ("spec", "maxRetry"), "write 1 to have it tried once", warning=True)


def _restarts(subject: Subject) -> bool:
    spec = subject.job.spec
    policies = (spec.policies, *(task.policies for task in spec.tasks))
    return any(policy.action in _RESTARTS for some in policies for policy in some)
