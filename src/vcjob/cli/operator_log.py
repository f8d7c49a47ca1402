"""What an operator logs: a line each, for people or as JSON; with the key of the Job it is about.

Plain ``logging`` with a formatter of msgspec: the structured loggers that there are bring more than
this needs.
"""

import errno
import logging
import sys
from typing import Any, TextIO

import msgspec

from vcjob.api.problems import printable
from vcjob.controller.log_context import add_job
from vcjob.core.times import micro_timestamp

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUIET_SECONDS = 60.0
_encode = msgspec.json.Encoder(enc_hook=str).encode


def set_up(form: str, level: str, stream: TextIO | None = None) -> None:
    """Log from here on in a form and from a level on; standard error unless told otherwise."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(add_job)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    asyncio_log = logging.getLogger("asyncio")
    asyncio_log.setLevel(max(logging.WARNING, root.level))
    asyncio_log.addFilter(_no_descriptors)
    logging.captureWarnings(True)


class _NoDescriptors(logging.Filter):
    """Tells once a minute that no descriptor is left: asyncio does so 100 times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._told = -_QUIET_SECONDS

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is to be logged; it loses its trace, which says nothing."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            return True
        if record.created - self._told < _QUIET_SECONDS:
            return False
        self._told = record.created
        record.msg, record.args = "connections wait: %s", (error.strerror,)
        record.exc_info = None
        return True


_no_descriptors = _NoDescriptors()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """What was given as ``extra``: the Job's key first."""
    given = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return dict(sorted(given.items(), key=lambda pair: pair[0] != "job"))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, message, then what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said: dict[str, Any] = {
            "time": micro_timestamp(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_fields(record),
            "logger": record.name,
        }
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return _encode(said).decode()


class TextFormatter(logging.Formatter):
    """The same for people: ``2026-01-31T12:00:00Z WARNING ml/mnist: ...``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and below it the trace of a fault."""
        fields = _fields(record)
        job = fields.pop("job", "")
        about = f"{job}: " if job else ""
        more = "".join(f" {name}={value}" for name, value in fields.items())
        line = printable(f"{about}{record.getMessage()}{more}")
        text = f"{micro_timestamp(record.created)} {record.levelname:<7} {line}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text
