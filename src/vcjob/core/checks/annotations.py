"""Our own annotations on a Job: a misspelt one would otherwise be ignored silently."""

from collections.abc import Iterator

from vcjob.api.names import (
    COPY_LABELS,
    MINIMUM_FIRST,
    OUR_ANNOTATIONS,
    OUR_PREFIX,
    SUSPEND,
    UNCOUNTED_EVENTS,
)
from vcjob.api.problems import Problem
from vcjob.api.suggestions import suggest
from vcjob.core.actions import Event
from vcjob.core.checks.subject import Subject
from vcjob.core.pods import wanted_labels
from vcjob.core.retries import uncounted_events


def check_annotations(subject: Subject) -> Iterator[Problem]:
    """A warning for each annotation (or label) under our prefix that has no effect."""
    known = [annotation.key for annotation in OUR_ANNOTATIONS]
    metadata = subject.job.metadata
    for key in metadata.annotations:
        if key.startswith(OUR_PREFIX) and key not in known:
            path = ("metadata", "annotations", key)
            yield Problem(f"no annotation {key} is known", path, suggest(key, known), warning=True)
    for key in metadata.labels:
        if key in known:
            yield Problem(
                f"{key} has no effect as a label",
                ("metadata", "labels", key),
                "write it under metadata.annotations",
                warning=True,
            )
    for key in (SUSPEND, MINIMUM_FIRST):
        value = metadata.annotations.get(key)
        if value not in (None, "true", "false"):
            yield Problem(
                f'{key} is "{value}", which means nothing',
                ("metadata", "annotations", key),
                'write "true" or "false"',
                warning=True,
            )
    for key in wanted_labels(subject.job):
        if key not in metadata.labels:
            yield Problem(
                f'{COPY_LABELS} names the label "{key}", which the Job does not have',
                ("metadata", "annotations", COPY_LABELS),
                suggest(key, metadata.labels),
                warning=True,
            )
    for name in uncounted_events(subject.job):
        if name not in list(Event):
            yield Problem(
                f'{UNCOUNTED_EVENTS} names "{name}", which is no event of which restarts come',
                ("metadata", "annotations", UNCOUNTED_EVENTS),
                suggest(name, list(Event)) or f"events are {', '.join(Event)}",
                warning=True,
            )
