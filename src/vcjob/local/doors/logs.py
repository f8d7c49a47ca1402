"""``pods/log``: the output of a container.

Source: Kubernetes API reference, "Pod v1, read log of the specified Pod", and the reference of
``PodLogOptions``.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime

from aiohttp import web

from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster
from vcjob.local.agent.logs import Logs
from vcjob.local.agent.podphase import run_number
from vcjob.local.apiserver import query
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.status import Refused
from vcjob.local.doors.reading import Part, output
from vcjob.local.doors.targets import Target, target_at

_SECOND = 1_000_000_000
_SLOWEST_READER = 300.0
"""Seconds in which a reader must take something. The text waits in its file meanwhile, and a pager
may be left alone for a while."""


class LogDoor:
    """Answers requests for ``log``; ``clock`` gives nanoseconds since 1970."""

    def __init__(
        self, cluster: Cluster, logs: Logs, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._cluster = cluster
        self._logs = logs
        self._clock = clock

    async def __call__(
        self, request: web.BaseRequest, place: Place, asked: query.Query
    ) -> web.StreamResponse:
        """Answer one request; raises Refused (400, 404, 405, 422)."""
        if request.method != "GET":
            raise Refused(405, "the log of a pod can be read only")
        part = part_asked(asked, self._clock())
        limit = _at_least_one(asked, "limitBytes")
        target = await target_at(self._cluster, place, asked.get("container", ""))
        run = run_asked(target, previous=bool(query.flag(asked, "previous")))
        metadata = target.pod["metadata"]
        path = self._logs.files.path(metadata["namespace"], metadata["name"], target.name, run)
        response = web.StreamResponse(headers={"Content-Type": "text/plain", **_HEADERS})
        await response.prepare(request)
        text = output(self._logs, path, target.uid, part)
        try:
            async for piece in text if limit is None else _limited(text, limit):
                async with asyncio.timeout(_SLOWEST_READER):
                    await response.write(piece)
            await response.write_eof()
        except ConnectionError:
            pass  # the reader is gone
        except TimeoutError:
            response.force_close()
        return response


_HEADERS = {"Cache-Control": "no-cache, private"}


def part_asked(asked: query.Query, now: int) -> Part:
    """The part of the output that the parameters name; raises Refused (400, 422)."""
    seconds, since_time = _at_least_one(asked, "sinceSeconds"), asked.get("sinceTime")
    if seconds and since_time:
        raise Refused(422, "at most one of sinceTime or sinceSeconds may be specified")
    if asked.get("stream", "All") not in ("All", ""):
        raise Refused(422, "output and errors of a container are one stream here: stream=All")
    since = now - seconds * _SECOND if seconds else 0
    if since_time:
        since = _nanoseconds(since_time)
    return Part(
        follow=bool(query.flag(asked, "follow")),
        tail=query.count(asked, "tailLines"),
        since=since,
        timestamps=bool(query.flag(asked, "timestamps")),
    )


def run_asked(target: Target, *, previous: bool) -> int:
    """The number of the run of a container whose output is asked for; raises Refused (400)."""
    status = target.status
    pod = target.pod["metadata"]["name"]
    state: Object = status.get("state") or {}
    ended: Object = (status.get("lastState") or {}).get("terminated") or {}
    run = run_number(status, previous=previous)
    if previous and not ended:
        raise Refused(
            400, f'previous terminated container "{target.name}" in pod "{pod}" not found'
        )
    if run is None:
        if reason := (state.get("terminated") or {}).get("message"):
            raise Refused(400, f'container "{target.name}" in pod "{pod}" did not start: {reason}')
        reason = (state.get("waiting") or {}).get("reason") or _before_start(target.pod)
        raise Refused(
            400, f'container "{target.name}" in pod "{pod}" is waiting to start: {reason}'
        )
    return run


def _before_start(pod: Object) -> str:
    """Why a container has no state yet: the pod waits for room, or is being set up."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason"))
    return "ContainerCreating"


async def _limited(text: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    async for piece in text:
        yield piece[:most]
        most -= len(piece)
        if most <= 0:
            return


def _at_least_one(asked: query.Query, name: str) -> int | None:
    number = query.count(asked, name)
    if number == 0:
        raise Refused(422, f"{name} must be greater than 0")
    return number


def _nanoseconds(text: str) -> int:
    """An RFC 3339 time, with up to nine digits behind its second."""
    try:
        main, dot, rest = text.partition(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        zone = rest[len(digits) :] if dot else ""
        seconds = datetime.fromisoformat(main + zone)
        if seconds.tzinfo is None:
            raise ValueError("no time zone")
        return int(seconds.timestamp()) * _SECOND + int(digits.ljust(9, "0")[:9] or 0)
    except ValueError as error:
        raise Refused(400, f"sinceTime must be a time as of RFC 3339, not {text[:60]!r}") from error
