"""Plugins: that they are known."""

from collections.abc import Iterator

from vcjob.api.problems import Problem
from vcjob.api.suggestions import closest
from vcjob.core.checks.subject import Subject

_KNOWN = ("svc", "env", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank")


def check_plugins(subject: Subject) -> Iterator[Problem]:
    """Every plugin of the Job is known."""
    for name in subject.job.spec.plugins:
        if name not in _KNOWN:
            yield Problem(
                f'there is no plugin "{name}"', ("spec", "plugins", name), closest(name, _KNOWN)
            )
