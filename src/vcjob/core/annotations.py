"""What annotations of ours ask of the course of a Job, and which of their values mean nothing.

Those that plugins read are looked at by the plugins.
"""

from collections.abc import Iterator

from vcjob.api.names import MINIMUM_FIRST, SUSPEND, UNCOUNTED_EVENTS
from vcjob.api.problems import Path, Problem
from vcjob.api.suggestions import suggest
from vcjob.api.types import Job
from vcjob.core.actions import Event
from vcjob.core.retries import uncounted_events

IGNORED = "AnnotationIgnored"
"""Reason of Events about annotations that have no effect."""

_SWITCHES = {"true": True, "false": False}


def switched(job: Job, key: str) -> bool | None:
    """Whether an annotation switches something on; None if its value means nothing.

    One that is not there switches nothing on.
    """
    return _SWITCHES.get(job.metadata.annotations.get(key, "false").lower())


def is_read_here(path: Path) -> bool:
    """Whether a problem is one of an annotation that no plugin reads, by its path."""
    return path[:2] == ("metadata", "annotations") and path[-1] in _READ_HERE


_READ_HERE = (SUSPEND, MINIMUM_FIRST, UNCOUNTED_EVENTS)


def annotation_problems(job: Job) -> Iterator[Problem]:
    """Each value that means nothing."""
    for key in (SUSPEND, MINIMUM_FIRST):
        if switched(job, key) is None:
            yield Problem(
                f'{key} is "{job.metadata.annotations[key]}", which means nothing',
                ("metadata", "annotations", key),
                'write "true" or "false"',
            )
    for name in uncounted_events(job):
        if name not in list(Event):
            yield Problem(
                f'{UNCOUNTED_EVENTS} names "{name}", which is no event of which restarts come',
                ("metadata", "annotations", UNCOUNTED_EVENTS),
                suggest(name, list(Event)) or f"events are {', '.join(Event)}",
            )
