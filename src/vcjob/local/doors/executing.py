"""``pods/exec``: a program inside a running container, with its streams at the client.

Source: Kubernetes API reference, ``PodExecOptions``.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from aiohttp import web

from vcjob.controller.cluster import Cluster
from vcjob.local.agent.inside import Inside
from vcjob.local.agent.pipes import End
from vcjob.local.apiserver import query
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.status import Refused
from vcjob.local.doors.channels import (
    PROTOCOLS,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    Channels,
    ended_with,
    failed,
    noticed,
    open_websocket,
)
from vcjob.local.doors.streams import Streams
from vcjob.local.doors.targets import FindInside, inside_of
from vcjob.local.node.client import Entry, NodeGone, NodeRefused


class Wanted(msgspec.Struct, frozen=True):
    """Which streams a client wants of a program; with a terminal, errors are in its output."""

    stdin: bool
    stdout: bool
    stderr: bool
    terminal: bool


class Size(msgspec.Struct, rename="pascal"):
    """The window size of a terminal, in characters."""

    width: int
    height: int


class ExecDoor:
    """Answers requests for ``exec``."""

    def __init__(self, cluster: Cluster, find: FindInside) -> None:
        self._cluster = cluster
        self._find = find

    async def __call__(
        self, request: web.BaseRequest, place: Place, asked: query.Query
    ) -> web.StreamResponse:
        """Run the program, for as long as the client is there; raises Refused (400, 404)."""
        command = request.rel_url.query.getall("command", [])
        if not command or not command[0]:
            raise Refused(400, "you must specify at least one command for the container")
        wanted = wanted_streams(asked)
        container = asked.get("container", "")
        _, inside = await inside_of(self._cluster, self._find, place, container)
        websocket = await open_websocket(request, PROTOCOLS)
        channels = Channels(websocket)
        try:
            async with noticed(websocket):
                await channels.finish(await _run(channels, inside, command, wanted))
        except (NodeRefused, NodeGone, OSError) as error:
            if not isinstance(error, ConnectionError):
                await channels.finish(failed(str(error)))
        return websocket


def wanted_streams(asked: query.Query) -> Wanted:
    """The streams that the parameters name; raises Refused (400)."""
    terminal = bool(query.flag(asked, "tty"))
    wanted = Wanted(
        stdin=bool(query.flag(asked, "stdin")),
        stdout=bool(query.flag(asked, "stdout")),
        stderr=bool(query.flag(asked, "stderr")) and not terminal,
        terminal=terminal,
    )
    if not (wanted.stdin or wanted.stdout or wanted.stderr):
        raise Refused(400, "you must specify at least 1 of stdin, stdout, stderr")
    return wanted


async def _run(channels: Channels, inside: Inside, command: list[str], wanted: Wanted) -> Any:
    """Run a program until it has ended, and pass on its output; returns its Status.

    It is killed when its client is gone. Raises NodeRefused, NodeGone, OSError, ConnectionError.
    """
    streams = Streams(
        stdin=wanted.stdin,
        stdout=wanted.stdout,
        stderr=wanted.stderr,
        terminal=wanted.terminal,
    )
    try:
        async with _entered(inside, command, streams) as entry:
            await _carry(channels, streams, entry)
            exited = await entry.exited
            if exited.error:
                told = STDERR if wanted.stderr else STDOUT
                await channels.send(told, f"{exited.error}\n".encode())
            return ended_with(exited.exit_code)
    finally:
        streams.close()


@contextlib.asynccontextmanager
async def _entered(inside: Inside, command: list[str], streams: Streams) -> AsyncIterator[Entry]:
    """A program inside, which does not outlive the context."""
    entering = asyncio.create_task(
        inside.node.enter(
            inside.run,
            command,
            *streams.given,
            environment=_environment(inside, command, terminal=streams.is_terminal),
            directory=inside.directory,
            terminal=streams.is_terminal,
        )
    )
    try:
        entry = await asyncio.shield(entering)  # one that was asked for is there to be killed
        await streams.started()
        yield entry
    finally:
        with contextlib.suppress(NodeRefused, NodeGone):
            entry = await entering
            if not entry.exited.done():
                await inside.node.signal_entry(entry, signal.SIGKILL)


def _environment(inside: Inside, command: list[str], *, terminal: bool) -> dict[str, str]:
    """The container's, with what container runtimes add for programs at a terminal."""
    added = {"TERM": "xterm"} if terminal else {}
    if command[0] == "tar" and os.geteuid() != 0:
        # "kubectl cp" sends files with their owners, and tar fails to give files to users whom the
        # pods of an ordinary user do not have.
        added["TAR_OPTIONS"] = "--no-same-owner"
    return {**added, **inside.environment, "PWD": inside.directory}


async def _carry(channels: Channels, streams: Streams, entry: Entry) -> None:
    """Carry bytes both ways until the program has ended; raises ConnectionError."""
    ends = ((STDOUT, streams.stdout), (STDERR, streams.stderr))
    outputs = asyncio.gather(*(_pass_on(channels, n, end, entry) for n, end in ends if end))
    feeding = asyncio.create_task(_feed(channels, streams, entry))
    waited: set[asyncio.Future[Any]] = {entry.exited, outputs, feeding}
    try:
        while not entry.exited.done():
            done, waited = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if outputs in done:
                outputs.result()
            if feeding in done and not entry.exited.done():
                feeding.result()
                raise ConnectionResetError("the client has gone")
        await outputs
    finally:
        outputs.cancel()
        feeding.cancel()
        await asyncio.gather(outputs, feeding, return_exceptions=True)


async def _pass_on(channels: Channels, number: int, end: End, entry: Entry) -> None:
    while data := await end.read(entry.exited):
        await channels.send(number, data)


async def _feed(channels: Channels, streams: Streams, entry: Entry) -> None:
    """Take what the client sends, until it is gone."""
    async for number, data in channels.received():
        if number == STDIN and streams.stdin:
            if data is not None:
                await streams.stdin.write(data, entry.exited)
            elif not streams.is_terminal:
                streams.stdin.close()
        elif number == RESIZE and data and streams.is_terminal and streams.stdout:
            with contextlib.suppress(msgspec.DecodeError):
                size = msgspec.json.decode(data, type=Size)
                streams.stdout.resize(size.width, size.height)
