"""Our own annotations on a Job: what is misspelt would otherwise be ignored silently."""

from collections.abc import Iterator

from vcjob.api.names import COPY_LABELS, OUR_ANNOTATIONS, OUR_PREFIX
from vcjob.api.problems import Problem
from vcjob.api.suggestions import suggest
from vcjob.core.annotations import annotation_problems
from vcjob.core.checks.subject import Subject
from vcjob.core.pods import wanted_labels
from vcjob.plugins.registry import ORDER

_KNOWN = {annotation.key: annotation for annotation in OUR_ANNOTATIONS}


def check_annotations(subject: Subject) -> Iterator[Problem]:
    """Values that mean nothing, and a warning for each annotation (or label) without effect."""
    metadata = subject.job.metadata
    for key in metadata.annotations:
        path = ("metadata", "annotations", key)
        owner = _KNOWN[key].owner if key in _KNOWN else ""
        if key.startswith(OUR_PREFIX) and not owner:
            yield Problem(f"no annotation {key} is known", path, suggest(key, _KNOWN), warning=True)
        elif owner in ORDER and owner not in subject.job.spec.plugins:
            message = f"{key} has no effect, because the Job does not use the plugin {owner}"
            yield Problem(message, path, f"add {owner} to spec.plugins", warning=True)
    for key in metadata.labels:
        if key in _KNOWN:
            yield Problem(
                f"{key} has no effect as a label",
                ("metadata", "labels", key),
                "write it under metadata.annotations",
                warning=True,
            )
    yield from annotation_problems(subject.job)
    for key in wanted_labels(subject.job):
        if key not in metadata.labels:
            yield Problem(
                f'{COPY_LABELS} names the label "{key}", which the Job does not have',
                ("metadata", "annotations", COPY_LABELS),
                suggest(key, metadata.labels),
                warning=True,
            )


def check_changed_annotations(
    old: Subject, new: Subject, problems: list[Problem]
) -> Iterator[Problem]:
    """Of all ``problems`` of a changed Job those of the annotations that are changed."""
    before, after = old.job.metadata.annotations, new.job.metadata.annotations
    changed = {key for key, value in after.items() if before.get(key) != value}
    for problem in problems:
        if problem.path[:2] == ("metadata", "annotations") and problem.path[2] in changed:
            yield problem
