"""Connections that nobody needs are closed, those that somebody uses stay."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from vcjob.controller.probes import listening

ASK = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
LONG = 60.0
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Clients:
    """Connections to a port, closed in the end."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._made: list[Connection] = []

    async def connect(self, *sent: bytes) -> Connection:
        made = await asyncio.open_connection("127.0.0.1", self._port)
        self._made.append(made)
        made[1].writelines(sent)
        return made

    async def close(self) -> None:
        for _, writer in self._made:
            writer.close()
        for _, writer in self._made:
            with suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def served(*, silent_seconds: float = LONG, most: int = 1000) -> AsyncIterator[Clients]:
    """Clients of a server whose answer is "ok"."""

    async def ok(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_get("/", ok)
    address = ("127.0.0.1", 0)
    async with listening(
        application, address, "--x", silent_seconds=silent_seconds, most_connections=most
    ) as port:
        clients = Clients(port)
        try:
            yield clients
        finally:
            await clients.close()


async def answered(connection: Connection) -> None:
    reader, writer = connection
    writer.write(ASK)
    await reader.readuntil(b"\r\n\r\nok")


async def is_closed(connection: Connection) -> bool:
    try:
        return await connection[0].read(1) == b""
    except ConnectionResetError:
        return True


def test_who_asks_nothing_is_sent_away_and_who_asked_may_ask_again() -> None:
    async def scenario() -> None:
        async with served(silent_seconds=0.2) as clients:
            asking = await clients.connect()
            await answered(asking)
            silent, half = await clients.connect(), await clients.connect(ASK[:-4])
            assert await is_closed(silent)
            assert await is_closed(half)
            await answered(asking)

    asyncio.run(asyncio.wait_for(scenario(), LONG))


def test_beyond_the_most_the_oldest_that_have_nothing_under_way_are_closed() -> None:
    async def scenario() -> None:
        async with served(most=2) as clients:
            connections = []
            for _ in range(4):
                connections.append(await clients.connect())
                await answered(connections[-1])
            assert await is_closed(connections[0])
            assert await is_closed(connections[1])
            await answered(connections[2])
            await answered(connections[3])

    asyncio.run(asyncio.wait_for(scenario(), LONG))


@pytest.mark.parametrize("sent", [b"\0" * 100_000, b"GET / HTTP/1.1\r\n\r\n", ASK[:-2] + b"a\0: b"])
def test_what_is_no_http_is_refused_and_fills_no_log(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with served() as clients:
            reader, _ = await clients.connect(sent, b"\r\n\r\n")
            assert (await reader.readline()).endswith(b" 400 Bad Request\r\n")

    with caplog.at_level(logging.INFO):
        asyncio.run(asyncio.wait_for(scenario(), LONG))
    assert caplog.records == []
