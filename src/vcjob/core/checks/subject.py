"""What the rules look at: a Job with fields of the right types and with its defaults."""

from collections.abc import Mapping
from typing import Any

import msgspec

from vcjob.api.defaults import Requires, apply_defaults
from vcjob.api.problems import Problem
from vcjob.api.schema.job import JOB
from vcjob.api.schema.readable import readable_part
from vcjob.api.types import Job, Object

# What generateName is completed with here: as long as the API server's suffix.
GENERATED_SUFFIX = "00000"


class Subject(msgspec.Struct, frozen=True):
    """A Job to be checked.

    ``counts_known`` is False when replicas or minimums cannot be read: rules about sums would only
    repeat that in other words. ``tasks`` are the tasks as JSON, in the order of ``job.spec.tasks``.
    """

    object: Object
    job: Job
    counts_known: bool

    @property
    def tasks(self) -> list[Object]:
        """spec.tasks as JSON."""
        tasks: list[Object] = self.object.get("spec", {}).get("tasks", [])
        return tasks


class Lookup(msgspec.Struct, frozen=True):
    """What only a cluster knows: its Queues by name, and the names of its PriorityClasses.

    None means that they are not known; then the rules that need them are left out.
    """

    queues: Mapping[str, Object] | None = None
    priority_classes: frozenset[str] | None = None


def subject_of(job: Any, field_problems: list[Problem], requires: Requires) -> Subject:
    """The readable part of ``job`` with defaults; ``field_problems`` is what was wrong with it.

    ``requires`` tells which plugins need others (``apply_defaults``).
    """
    readable = apply_defaults(readable_part(job, JOB), requires=requires)
    metadata = readable.get("metadata", {})
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = f"{metadata['generateName']}{GENERATED_SUFFIX}"
    return Subject(
        readable, Job.of(readable), not any(_hides_counts(problem) for problem in field_problems)
    )


def _hides_counts(problem: Problem) -> bool:
    path = problem.path
    if problem.warning or path[:1] != ("spec",):
        return False
    return (
        len(path) == 1
        or path[-1] in ("tasks", "replicas", "minAvailable")
        or (path[-2:-1] == ("tasks",) and isinstance(path[-1], int))
    )
