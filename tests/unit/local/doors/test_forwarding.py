"""Ports of pods over WebSocket, with servers on this machine instead of in a pod."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from served import PODS, Asking, pod, served

from vcjob.api.kinds import POD
from vcjob.local.doors.forwarding import ForwardDoor
from vcjob.local.doors.spdy import Data, Frame, Ping, Reader, Reset, Writer
from vcjob.local.doors.tunnel import PROTOCOL
from vcjob.local.store import Store

CHANNELS = "v4.channel.k8s.io"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class _Node:
    async def open_socket(self, pod: str = "") -> socket.socket:
        opened = socket.socket()
        opened.setblocking(False)
        return opened


@contextlib.asynccontextmanager
async def _world(*, phase: str = "Running") -> AsyncIterator[Asking]:
    store = Store(lambda: 0.0)
    door = ForwardDoor(store, _Node())  # type: ignore[arg-type]
    async with served(store=store, doors={"portforward": door}) as ask:
        await ask.made(PODS, pod("p"))
        await store.patch(POD, "default", "p", {"status": {"phase": phase}}, subresource="status")
        yield ask


@contextlib.asynccontextmanager
async def _listening(handler: Handler) -> AsyncIterator[int]:
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with what came, backwards, once all of it has come."""
    writer.write((await reader.read())[::-1])
    await writer.drain()
    writer.close()


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Greets by name, a line each, and leaves after "bye"."""
    while (name := await reader.readline()) != b"bye\n":
        writer.write(b"hello " + name)
    writer.close()


def _unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


class _Kubectl:
    """The client's side of a tunnel."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self.websocket = websocket
        self.writer = Writer()
        self.streams: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.others: list[Frame] = []
        self._reader = Reader()

    async def open(self, number: int, port: int | str) -> None:
        """Open the streams of connection ``number``: 4n + 1 for errors, 4n + 3 for data."""
        for stream, kind in ((4 * number + 1, "error"), (4 * number + 3, "data")):
            headers = {"streamType": kind, "port": str(port), "requestID": str(number)}
            await self.websocket.send_bytes(self.writer.opened(stream, headers))
            self.streams[stream] = bytearray()
        await self.websocket.send_bytes(self.writer.data(4 * number + 1, b"", is_last=True))

    async def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        await self.websocket.send_bytes(self.writer.data(stream, data, is_last=is_last))

    async def until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            message = await self.websocket.receive()
            assert message.type is aiohttp.WSMsgType.BINARY, message
            for frame in self._reader.feed(message.data):
                match frame:
                    case Data(stream, data, is_last):
                        self.streams[stream] += data
                        if is_last:
                            self.ended.add(stream)
                    case _:
                        self.others.append(frame)


def _tunnelled(session: Callable[[_Kubectl], Awaitable[None]]) -> None:
    async def run() -> None:
        async with (
            _world() as ask,
            ask.session.ws_connect(
                f"{ask.url}{PODS}/p/portforward", protocols=(PROTOCOL,)
            ) as websocket,
        ):
            assert websocket.protocol == PROTOCOL
            await session(_Kubectl(websocket))

    asyncio.run(asyncio.wait_for(run(), 30))


def test_the_end_of_the_clients_data_reaches_the_pod_and_its_answer_comes_back() -> None:
    async def session(client: _Kubectl) -> None:
        data = b"".join(b"%d " % number for number in range(100_000))
        async with _listening(_echo) as port:
            await client.open(0, port)
            for at in range(0, len(data), 30_000):
                await client.send(3, data[at : at + 30_000])
            await client.send(3, b"", is_last=True)
            await client.until(lambda: client.ended == {1, 3})
        assert client.streams == {1: b"", 3: data[::-1]}

    _tunnelled(session)


def test_connections_of_one_tunnel_do_not_mix() -> None:
    async def session(client: _Kubectl) -> None:
        async with _listening(_greet) as port:
            for number in range(20):
                await client.open(number, port)
            for number in reversed(range(20)):
                await client.send(4 * number + 3, b"%d\nbye\n" % number)
            await client.until(lambda: len(client.ended) == 40)
        for number in range(20):
            assert client.streams[4 * number + 3] == b"hello %d\n" % number

    _tunnelled(session)


def test_a_port_without_a_listener_is_told_and_the_tunnel_goes_on() -> None:
    async def session(client: _Kubectl) -> None:
        port = _unused_port()
        await client.open(0, port)
        await client.until(lambda: client.ended == {1, 3})
        said = client.streams[1].decode()
        assert f"error forwarding port {port} to pod p, uid " in said
        assert said.endswith("Connection refused")
        async with _listening(_greet) as port:
            await client.open(1, port)
            await client.send(7, b"you\nbye\n")
            await client.until(lambda: 7 in client.ended)
        assert client.streams[7] == b"hello you\n"

    _tunnelled(session)


def test_pings_are_answered_and_streams_that_make_no_sense_reset() -> None:
    async def session(client: _Kubectl) -> None:
        await client.websocket.send_bytes(client.writer.ping(5))
        await client.open(0, "none")
        await client.open(1, 70_000)
        await client.until(lambda: len(client.others) == 5)
        assert client.others == [Ping(5), Reset(1), Reset(3), Reset(5), Reset(7)]

    _tunnelled(session)


@contextlib.asynccontextmanager
async def _waiting() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A server that says it is there and waits; the event is set when its client has gone."""
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"there")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set()
        writer.close()

    async with _listening(wait) as port:
        yield port, ended


def test_a_stream_that_is_reset_ends_its_connection() -> None:
    async def session(client: _Kubectl) -> None:
        async with _waiting() as (port, ended):
            await client.open(0, port)
            await client.until(lambda: client.streams[3] == b"there")
            await client.websocket.send_bytes(client.writer.reset(3, 5))
            await ended.wait()

    _tunnelled(session)


def test_a_client_that_goes_ends_its_connections_and_one_that_speaks_http_is_sent_away() -> None:
    async def session(client: _Kubectl) -> None:
        async with _waiting() as (port, ended):
            await client.open(0, port)
            await client.until(lambda: client.streams[3] == b"there")
            await client.websocket.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
            assert (await client.websocket.receive()).type is aiohttp.WSMsgType.CLOSE
            await ended.wait()

    _tunnelled(session)


def test_channels_carry_a_connection_for_each_port() -> None:
    async def run() -> None:
        unused = _unused_port()
        async with _world() as ask, _listening(_greet) as port:
            asked = [("ports", f"{port},{unused}"), ("ports", str(port))]
            async with ask.session.ws_connect(
                f"{ask.url}{PODS}/p/portforward", params=asked, protocols=(CHANNELS,)
            ) as websocket:
                await websocket.send_bytes(b"\4third\nbye\n")
                await websocket.send_bytes(b"\0first\nbye\n")
                said: dict[int, bytes] = dict.fromkeys(range(6), b"")
                async for message in websocket:
                    said[message.data[0]] += message.data[1:]
        first, second = port.to_bytes(2, "little"), unused.to_bytes(2, "little")
        assert said[0] == first + b"hello first\n"
        assert said[4] == first + b"hello third\n"
        assert said[2] == second
        assert said[3].startswith(second + b"error forwarding port")
        assert (said[1], said[5]) == (first, first)

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize(
    ("phase", "query", "said"),
    [
        ("Pending", {}, "pod p is not running; it is Pending"),
        ("Running", {}, "WebSocket"),
        ("Running", {"ports": "0"}, "ports must be numbers from 1 to 65535"),
        ("Running", {"ports": "80,http"}, "ports must be numbers"),
        ("Running", {"ports": ",".join(["80"] * 101)}, "at most 100 ports"),
    ],
)
def test_what_is_refused(phase: str, query: dict[str, str], said: str) -> None:
    async def run() -> tuple[int, str]:
        async with _world(phase=phase) as ask:
            answer = await ask("GET", f"{PODS}/p/portforward", **query)
            return answer.code, answer.body["message"]

    code, message = asyncio.run(run())
    assert code == 400
    assert said in message
