"""Which Job a log line is about, known wherever in a pass over it the line is written."""

import logging
from contextvars import ContextVar

current_job: ContextVar[str] = ContextVar("current_job", default="")
"""``namespace/name`` of the Job that the running task works on; empty for none."""


def add_job(record: logging.LogRecord) -> bool:
    """A filter for log handlers: gives each record about a Job its key as ``job``."""
    if not hasattr(record, "job") and (job := current_job.get()):
        record.job = job
    return True
