"""Proxies that carry TLS through: by HTTP CONNECT, and SOCKS 5. They note where to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

Handshake = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[str]]


@contextlib.asynccontextmanager
async def tunnel(handshake: Handshake, port: int) -> AsyncIterator[tuple[int, list[str]]]:
    """Carry what comes to ``port`` of this machine, wherever it is meant to go.

    Yields the proxy's own port, and the addresses that it was asked for.
    """
    asked: list[str] = []
    carrying: set[asyncio.Task[None]] = set()
    ends: set[asyncio.StreamWriter] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.add(writer)
        asked.append(await handshake(reader, writer))
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", port)
        ends.add(back_writer)
        for pair in ((reader, back_writer), (back_reader, writer)):
            carrying.add(asyncio.ensure_future(_carry(*pair)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
        for end in ends:
            end.transport.abort()
        await asyncio.sleep(0)  # aborted transports close in the next turn of the loop


async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """The proxy's side of HTTP CONNECT."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return head.split()[1].decode()


async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """The proxy's side of SOCKS 5 without a password. Source: RFC 1928."""
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x00")
    kind = (await reader.readexactly(4))[3]
    assert kind == 3, "a name is wanted, so that the proxy looks it up"
    host = await reader.readexactly((await reader.readexactly(1))[0])
    number = int.from_bytes(await reader.readexactly(2), "big")
    writer.write(b"\x05\x00\x00\x01" + bytes(6))
    return f"{host.decode()}:{number}"


async def socks_refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """SOCKS 5 that may not connect to where it is asked."""
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x00")
    await reader.readexactly(4)
    writer.write(b"\x05\x02\x00\x01" + bytes(6))
    return ""


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
