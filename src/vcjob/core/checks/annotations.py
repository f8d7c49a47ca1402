"""Our own annotations on a Job: an unknown one would otherwise be ignored silently."""

from collections.abc import Iterator

from vcjob.api.names import OUR_ANNOTATIONS, OUR_PREFIX
from vcjob.api.problems import Problem
from vcjob.api.suggestions import suggest
from vcjob.core.checks.subject import Subject


def check_annotations(subject: Subject) -> Iterator[Problem]:
    """A warning for each annotation (or label) under our prefix that nothing reads."""
    known = [annotation.key for annotation in OUR_ANNOTATIONS]
    metadata = subject.job.metadata
    for kind, keys in (("annotations", metadata.annotations), ("labels", metadata.labels)):
        for key in keys:
            if not key.startswith(OUR_PREFIX):
                continue
            path = ("metadata", kind, key)
            if kind == "labels":
                hint = "vcjob reads annotations; write it under metadata.annotations"
                yield Problem(f'the label "{key}" has no effect', path, hint, warning=True)
            elif key not in known:
                hint = suggest(key, known)
                yield Problem(f'no annotation "{key}" is known', path, hint, warning=True)
