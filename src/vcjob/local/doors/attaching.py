"""``pods/attach``: what a container prints from now on, at the client.

Output and errors of a container are one stream here, which keeps their order: it is sent as output.
What the client types goes to a container that asks for ``stdin``.
Source: Kubernetes API reference, ``PodAttachOptions``.
"""

import asyncio
import contextlib
from typing import Any

import msgspec
from aiohttp import web

from vcjob.controller.cluster import Cluster
from vcjob.local.agent.inside import Inside
from vcjob.local.agent.logs import Logs
from vcjob.local.agent.stdin import Stdin
from vcjob.local.agent.terminal import Terminal
from vcjob.local.apiserver import query
from vcjob.local.apiserver.paths import Place
from vcjob.local.doors.channels import (
    PROTOCOLS,
    RESIZE,
    STDIN,
    STDOUT,
    Channels,
    ended_well,
    noticed,
    open_websocket,
)
from vcjob.local.doors.executing import Size, wanted_streams
from vcjob.local.doors.reading import Part, output
from vcjob.local.doors.targets import FindInside, Target, inside_of

_NEW = Part(follow=True, new_only=True)


class AttachDoor:
    """Answers requests for ``attach``."""

    def __init__(self, cluster: Cluster, logs: Logs, find: FindInside) -> None:
        self._cluster = cluster
        self._logs = logs
        self._find = find

    async def __call__(
        self, request: web.BaseRequest, place: Place, asked: query.Query
    ) -> web.StreamResponse:
        """Pass output on until the container or the client ends; raises Refused (400, 404)."""
        wanted = wanted_streams(asked)
        container = asked.get("container", "")
        target, inside = await inside_of(self._cluster, self._find, place, container)
        websocket = await open_websocket(request, PROTOCOLS)
        channels = Channels(websocket)
        showing = asyncio.create_task(
            self._show(channels, target, inside, shown=wanted.stdout or wanted.stderr)
        )
        stdin = inside.stdin if wanted.stdin else None
        terminal = inside.stdin if isinstance(inside.stdin, Terminal) else None
        listening = asyncio.create_task(_feed(channels, stdin, terminal))
        try:
            async with noticed(websocket):
                waited: list[asyncio.Task[Any]] = [showing, listening]
                done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                listening.cancel()
                await asyncio.wait((listening,))
                if showing in done:
                    await channels.finish(ended_well())
        finally:
            for task in (showing, listening):
                task.cancel()
            await asyncio.gather(showing, listening, return_exceptions=True)
            if stdin:
                stdin.detached()
        return websocket

    async def _show(
        self, channels: Channels, target: Target, inside: Inside, *, shown: bool
    ) -> None:
        metadata = target.pod["metadata"]
        run = int(inside.run.rpartition("/")[2])
        path = self._logs.files.path(metadata["namespace"], metadata["name"], target.name, run)
        with contextlib.suppress(ConnectionError):
            async for piece in output(self._logs, path, target.uid, _NEW):
                if shown:
                    await channels.send(STDOUT, piece)


async def _feed(
    channels: Channels, stdin: Stdin | Terminal | None, terminal: Terminal | None
) -> None:
    """Pass on what the client types, and the size of its window, until it is gone."""
    async for number, data in channels.received():
        if terminal and number == RESIZE and data:
            with contextlib.suppress(msgspec.DecodeError):
                size = msgspec.json.decode(data, type=Size)
                terminal.resize(size.width, size.height)
        elif stdin and number == STDIN:
            if data is None:
                stdin.detached()
            else:
                await stdin.write(data)
