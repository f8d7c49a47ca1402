"""Connections to ports of pods."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable

import msgspec

from vcjob.api.types import Object
from vcjob.local.agent.surroundings import Node
from vcjob.local.node.client import NodeGone, NodeRefused

_AT_ONCE = 32 * 1024
_AHEAD = 256 * 1024
"""Bytes that are taken from the client before the pod reads them."""


class PodPorts(msgspec.Struct, frozen=True):
    """The ports of one pod, as programs in it reach them at 127.0.0.1."""

    node: Node
    pod: Object

    async def connect(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port. Raises OSError, NodeRefused, NodeGone."""
        opened = await self.node.open_socket(self.pod["metadata"]["uid"])
        try:
            await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
            return await asyncio.open_connection(sock=opened)
        except BaseException:
            opened.close()
            raise

    def failure(self, port: int, why: object) -> str:
        """The sentence for a connection that came to nothing."""
        metadata = self.pod["metadata"]
        return (
            f"error forwarding port {port} to pod {metadata['name']}, uid {metadata['uid']}: {why}"
        )


class Forwarded:
    """One connection between a client and a port, from dialling to its end.

    ``on_data`` gets what the pod sends, and is waited for; ``on_end`` is called once at the end,
    with a sentence if something went wrong. Both may raise ConnectionError: the client is gone.
    """

    def __init__(
        self,
        ports: PodPorts,
        port: int,
        on_data: Callable[[bytes], Awaitable[None]],
        on_end: Callable[[str], Awaitable[None]],
    ) -> None:
        self._ports = ports
        self._port = port
        self._on_data = on_data
        self._on_end = on_end
        self._writer: asyncio.Future[asyncio.StreamWriter | None]
        self._writer = asyncio.get_running_loop().create_future()
        self._carrying = asyncio.create_task(self._carry())

    async def send(self, data: bytes) -> None:
        """Send to the pod; waits while it does not keep up."""
        writer = await asyncio.shield(self._writer)
        if writer:
            with contextlib.suppress(ConnectionError):
                writer.write(data)
                await writer.drain()

    async def send_end(self) -> None:
        """Nothing more is sent to the pod."""
        writer = await asyncio.shield(self._writer)
        if writer:
            with contextlib.suppress(OSError):
                writer.write_eof()

    def abort(self) -> None:
        """The client wants no more of it."""
        self._carrying.cancel()

    async def ended(self) -> None:
        """Wait until it has ended."""
        await asyncio.wait((self._carrying,))

    async def _carry(self) -> None:
        error = ""
        try:
            reader, writer = await self._ports.connect(self._port)
        except (OSError, NodeRefused, NodeGone) as refused:
            number = refused.errno if isinstance(refused, OSError) else None
            error = self._ports.failure(self._port, os.strerror(number) if number else refused)
            self._writer.set_result(None)
        except BaseException:
            self._writer.set_result(None)
            raise
        else:
            writer.transport.set_write_buffer_limits(_AHEAD)
            self._writer.set_result(writer)
            try:
                while data := await _read(reader):
                    await self._on_data(data)
            except ConnectionError:
                return  # the client is gone
            finally:
                writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self._on_end(error)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_AT_ONCE)
    except ConnectionError:
        return b""  # the pod has ended it, if rudely
