"""Connections that cost little, and not more of them than a process can bear."""

import asyncio
import contextlib
import sys
from asyncio import sslproto
from collections.abc import Iterator

from aiohttp import web
from aiohttp.typedefs import Handler

IDLE_SECONDS = 90.0
"""After which a connection that asks nothing is closed, as Kubernetes' API server does."""

_TLS_BUFFER = 32 * 1024  # two records of TLS, which are what it is read in
_LOOKED_AT_EVERY = 1.0
"""Seconds."""


def save_memory_of_tls() -> None:
    """Let TLS connections of this process have small buffers from now on.

    asyncio takes 256 KiB for each before its first byte: 5,000 connections of somebody who has no
    token made the engine grow by 1.5 GB, with these buffers by 0.4 GB.
    """
    sslproto.SSLProtocol.max_size = _TLS_BUFFER


_Connection = web.RequestHandler


class Connections:
    """Closes connections of a server that are of no use to anybody.

    aiohttp itself waits without end for the first request of a connection, and takes as many
    connections as there are descriptors.

    Args:
        silent_seconds: after which a connection is closed that has asked nothing yet.
        most: how many there may be; those that have nothing under way are closed beyond it, the
            oldest first. Without it there is no limit.
    """

    def __init__(self, silent_seconds: float, most: int = sys.maxsize) -> None:
        self._silent_seconds = silent_seconds
        self._most = most
        self._since: dict[_Connection, float] = {}
        self._asked: set[_Connection] = set()
        self._busy: set[_Connection] = set()

    @web.middleware
    async def note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A middleware that notes which connections ask; an application needs it."""
        with self.asking(request):
            return await handler(request)

    @contextlib.contextmanager
    def asking(self, request: web.BaseRequest) -> Iterator[None]:
        """While the block runs the request is under way; a server needs it for each."""
        connection = request.protocol
        self._asked.add(connection)
        self._busy.add(connection)
        try:
            yield
        finally:
            self._busy.discard(connection)

    async def keep(self, server: web.Server) -> None:
        """Look after the connections of the application's server until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_LOOKED_AT_EVERY, self._silent_seconds))
            for connection in self._of_no_use(server.connections, loop.time()):
                if connection.transport is not None:
                    connection.transport.abort()

    def _of_no_use(self, present: list[_Connection], now: float) -> list[_Connection]:
        self._since = {one: self._since.get(one, now) for one in present}
        self._asked &= self._since.keys()
        surplus = len(present) - self._most
        idle = [one for one in present if one not in self._busy]
        silent = [
            one
            for one in idle[max(surplus, 0) :]
            if one not in self._asked and now - self._since[one] >= self._silent_seconds
        ]
        return idle[: max(surplus, 0)] + silent
