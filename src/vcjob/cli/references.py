"""Queues and PriorityClasses that the Jobs of a run name, and that there will never be in it."""

from collections.abc import Iterator

import msgspec

from vcjob.api.kinds import PRIORITY_CLASS, QUEUE
from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.cli.manifests import Loaded
from vcjob.core.checks.queue_objects import ALWAYS_THERE
from vcjob.core.checks.queues import check_references
from vcjob.core.checks.subject import Lookup, subject_of
from vcjob.plugins.registry import Registry

_BRING = "a run has only what its files bring along: name a file with this {kind} too"


def missing_references(loaded: Loaded, registry: Registry) -> Iterator[Problem]:
    """What keeps a Job waiting for ever, since nobody can create anything during a run."""
    queues: dict[str, Object] = {name: {} for name in ALWAYS_THERE}
    classes = set()
    for other in loaded.others:
        name = other.object["metadata"].get("name", "")
        if other.kind == QUEUE:
            queues[name] = other.object
        elif other.kind == PRIORITY_CLASS:
            classes.add(name)
    lookup = Lookup(queues, frozenset(classes))
    for job in loaded.jobs:
        for problem in check_references(subject_of(job.defaulted, [], registry.requires), lookup):
            hint = problem.hint
            if problem.path[-1] != "queue":
                hint = _BRING.format(kind=PRIORITY_CLASS.kind)
            elif Job.of(job.defaulted).spec.queue not in queues:
                hint = f"{_BRING.format(kind=QUEUE.kind)}; {hint}"
            yield job.document.place(msgspec.structs.replace(problem, hint=hint, warning=False))
