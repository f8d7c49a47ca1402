"""Programs in containers from here: ``exec`` and ``attach`` over WebSocket.

Each message begins with the number of its channel. Source: Kubernetes KEP-3396 (version 5, which
can end one direction) and the reference of ``PodExecOptions``; servers before 1.30 speak version 4.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import msgspec

from vcjob.api.kinds import POD
from vcjob.controller.cluster import Invalid, Unavailable
from vcjob.kubernetes.connection import Connection, object_path
from vcjob.kubernetes.errors import Asked

STDIN, STDOUT, STDERR, STATUS, RESIZE = range(5)
_CLOSE = 255
_VERSION_5 = "v5.channel.k8s.io"
_PROTOCOLS = (_VERSION_5, "v4.channel.k8s.io")
_MOST_AT_ONCE = 64 * 1024
"""Bytes in one message; servers refuse big ones."""

OnOutput = Callable[[int, bytes], Awaitable[None]]
"""Gets what the program wrote: STDOUT or STDERR, and the bytes."""


class RemoteOptions(msgspec.Struct, frozen=True):
    """What to run where: an empty ``command`` attaches to the container's own program."""

    container: str = ""
    command: tuple[str, ...] = ()
    tty: bool = False

    def query(self, *, stdin: bool) -> list[tuple[str, str]]:
        """The options as the API's query parameters. With a terminal there is no stderr."""
        flags = {"stdin": stdin, "stdout": True, "stderr": not self.tty, "tty": self.tty}
        query = [(name, "true" if flag else "false") for name, flag in flags.items()]
        query += [("command", part) for part in self.command]
        return [*query, ("container", self.container)] if self.container else query


async def run_remotely(
    connection: Connection,
    namespace: str,
    pod: str,
    options: RemoteOptions,
    on_output: OnOutput,
    *,
    stdin: AsyncIterator[bytes] | None = None,
    sizes: AsyncIterator[tuple[int, int]] | None = None,
) -> int:
    """Run a program in a container, or attach to the one there is; returns its exit code.

    Args:
        connection: the server.
        namespace: the pod's.
        pod: its name.
        options: what to run.
        on_output: gets the output.
        stdin: the program's input; its end is the input's end.
        sizes: (columns, rows) of the terminal, now and whenever they change.

    Raises NotFound, Invalid (no such container, it does not run, no such program), Forbidden,
    Unavailable (the connection broke; the program may go on).
    """
    subresource = "exec" if options.command else "attach"
    # RBAC asks for the verb create, also of WebSockets, since 1.35.
    asked = Asked("create", POD, namespace, pod, subresource)
    websocket = connection.websocket(
        object_path(POD, namespace, pod, subresource),
        asked,
        protocols=_PROTOCOLS,
        query=options.query(stdin=stdin is not None),
    )
    async with websocket as channel, _background() as tasks:
        if stdin is not None:
            tasks.append(asyncio.create_task(_send_input(channel, stdin)))
        if sizes is not None:
            tasks.append(asyncio.create_task(_send_sizes(channel, sizes)))
        return await _receive(channel, on_output, connection.name, asked)


@contextlib.asynccontextmanager
async def _background() -> AsyncIterator[list[asyncio.Task[None]]]:
    """Tasks that end with the block. What they could not send, receiving tells better."""
    tasks: list[asyncio.Task[None]] = []
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception) and not isinstance(ended, aiohttp.ClientError):
                raise ended


async def _send_input(
    channel: aiohttp.ClientWebSocketResponse, stdin: AsyncIterator[bytes]
) -> None:
    async for piece in stdin:
        for start in range(0, len(piece), _MOST_AT_ONCE):
            await channel.send_bytes(bytes((STDIN,)) + piece[start : start + _MOST_AT_ONCE])
    if channel.protocol == _VERSION_5:
        await channel.send_bytes(bytes((_CLOSE, STDIN)))


async def _send_sizes(
    channel: aiohttp.ClientWebSocketResponse, sizes: AsyncIterator[tuple[int, int]]
) -> None:
    async for columns, rows in sizes:
        size = msgspec.json.encode({"Width": columns, "Height": rows})
        await channel.send_bytes(bytes((RESIZE,)) + size)


async def _receive(
    channel: aiohttp.ClientWebSocketResponse, on_output: OnOutput, server: str, asked: Asked
) -> int:
    async for message in channel:
        if message.type is aiohttp.WSMsgType.TEXT:
            data = message.data.encode()
        elif message.type is aiohttp.WSMsgType.BINARY:
            data = message.data
        else:
            break
        if not data:
            continue
        number, content = data[0], data[1:]
        if number in (STDOUT, STDERR):
            if content:
                await on_output(number, content)
        elif number == STATUS:
            return _exit_code(content)
    raise Unavailable(
        f"the connection to {server} ended when asked to {asked}; "
        "how the program ended is not known"
    )


def _exit_code(content: bytes) -> int:
    """The exit code that a Status object tells; raises Invalid for a program that never ran."""
    try:
        status: Any = msgspec.json.decode(content)
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        for cause in causes:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        raise Invalid(str(status.get("message") or "the program could not be run"))
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, KeyError, ValueError) as error:
        raise Invalid(content.decode(errors="replace")) from error
