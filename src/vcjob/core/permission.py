"""Annotations of ours that widen what the author of a Job may do: they work only where allowed."""

from collections.abc import Collection

import msgspec

from vcjob.api.names import WIDENING
from vcjob.api.types import Job
from vcjob.core.annotations import IGNORED
from vcjob.core.draft import Told


def as_allowed(job: Job, allowed: Collection[str] | None) -> tuple[Job, tuple[Told, ...]]:
    """The Job without the annotations that are not allowed here, and what to tell its author.

    ``allowed`` are those that work, None: all do.
    """
    annotations = job.metadata.annotations
    refused = [key for key in WIDENING if key in annotations and key not in (allowed or ())]
    if allowed is None or not refused:
        return job, ()
    kept = {key: value for key, value in annotations.items() if key not in refused}
    metadata = msgspec.structs.replace(job.metadata, annotations=kept)
    return msgspec.structs.replace(job, metadata=metadata), tuple(map(_told, refused))


def _told(key: str) -> Told:
    return Told(
        "Warning",
        IGNORED,
        f"the annotation {key} has no effect: the administrator of this cluster has not allowed "
        f"it (--allow-annotation {key})",
    )
