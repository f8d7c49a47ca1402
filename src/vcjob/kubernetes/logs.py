"""The output of a pod's container, as the API server hands it out."""

import contextlib
from collections.abc import AsyncIterator

import msgspec

from vcjob.api.kinds import POD
from vcjob.kubernetes.connection import Connection, object_path
from vcjob.kubernetes.errors import Asked
from vcjob.kubernetes.lines import lines


class LogOptions(msgspec.Struct, frozen=True):
    """Which part of the output: see ``kubectl logs``.

    ``tail`` is the number of last lines, None for all; ``since_seconds`` how old lines may be;
    ``since_time`` an RFC 3339 time; ``previous`` the run before the container's restart;
    ``timestamps`` puts the time (RFC 3339) before each line; ``limit_bytes`` ends it.
    """

    container: str = ""
    follow: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    since_time: str = ""
    previous: bool = False
    timestamps: bool = False
    limit_bytes: int | None = None

    def query(self) -> list[tuple[str, str]]:
        """The options as the API's query parameters."""
        values: list[tuple[str, object]] = [
            ("container", self.container),
            ("follow", "true" * self.follow),
            ("tailLines", self.tail),
            ("sinceSeconds", self.since_seconds),
            ("sinceTime", self.since_time),
            ("previous", "true" * self.previous),
            ("timestamps", "true" * self.timestamps),
            ("limitBytes", self.limit_bytes),
        ]
        return [(name, str(value)) for name, value in values if value not in (None, "")]


@contextlib.asynccontextmanager
async def log_lines(
    connection: Connection, namespace: str, pod: str, options: LogOptions
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Lines of a container's output, without their newline; ends when the container has ended.

    Raises NotFound, Invalid (no such container, or it has not started), Unavailable.
    """
    asked = Asked("get", POD, namespace, pod, "log")
    path = object_path(POD, namespace, pod, "log")
    stream = connection.stream(path, asked, query=options.query(), accept="*/*")
    async with stream as pieces:
        yield lines(pieces)
