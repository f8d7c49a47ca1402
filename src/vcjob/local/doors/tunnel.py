"""Ports forwarded over SPDY inside a WebSocket, as kubectl does it.

For each connection the client opens two streams with the same ``requestID``: one for errors, which
is only written by this side, and one for data. Source: Kubernetes KEP-4006, and the headers of
``PodPortForwardOptions`` clients.
"""

import asyncio

import msgspec
from aiohttp import web

from vcjob.local.doors.channels import messages
from vcjob.local.doors.ports import Forwarded, PodPorts
from vcjob.local.doors.spdy import Data, Malformed, Opened, Ping, Reader, Reset, Writer

PROTOCOL = "SPDY/3.1+portforward.k8s.io"

_MOST_CONNECTIONS = 1000
_PROTOCOL_ERROR, _REFUSED_STREAM = 1, 3


class _Pair(msgspec.Struct):
    """The streams of one connection."""

    port: int
    error: int = 0
    data: int = 0
    forwarded: Forwarded | None = None


class Tunnel:
    """One client's session."""

    def __init__(self, websocket: web.WebSocketResponse, ports: PodPorts) -> None:
        self._websocket = websocket
        self._ports = ports
        self._writer = Writer()
        self._pairs: dict[str, _Pair] = {}
        self._streams: dict[int, str] = {}

    async def run(self) -> None:
        """Carry connections until the client is gone, or speaks something else."""
        reader = Reader()
        try:
            async for message in messages(self._websocket):
                for frame in reader.feed(message):
                    match frame:
                        case Opened():
                            await self._open(frame)
                        case Data():
                            await self._take(frame)
                        case Reset(stream):
                            self._reset(stream)
                        case Ping(number):
                            await self._send(self._writer.ping(number))
        except Malformed as error:
            await self._websocket.close(code=1002, message=str(error).encode()[:100])
        finally:
            running = [pair.forwarded for pair in self._pairs.values() if pair.forwarded]
            for forwarded in running:
                forwarded.abort()
            await asyncio.gather(*(forwarded.ended() for forwarded in running))

    async def _open(self, opened: Opened) -> None:
        headers, stream = opened.headers, opened.stream
        kind, request = headers.get("streamtype"), headers.get("requestid", "")
        port = _port(headers.get("port", ""))
        if kind not in ("data", "error") or port is None or stream in self._streams:
            await self._send(self._writer.reset(stream, _PROTOCOL_ERROR))
            return
        if request not in self._pairs and len(self._pairs) >= _MOST_CONNECTIONS:
            await self._send(self._writer.reset(stream, _REFUSED_STREAM))
            return
        pair = self._pairs.setdefault(request, _Pair(port))
        self._streams[stream] = request
        setattr(pair, kind, stream)
        await self._send(self._writer.reply(stream))
        if pair.error and pair.data and not pair.forwarded:
            self._begin(request, pair)

    def _begin(self, request: str, pair: _Pair) -> None:
        async def on_data(data: bytes) -> None:
            await self._send(self._writer.data(pair.data, data))

        async def on_end(error: str) -> None:
            # Nothing is known of it any more when the client hears of its end.
            self._forget(request)
            await self._send(self._writer.data(pair.error, error.encode(), is_last=True))
            await self._send(self._writer.data(pair.data, b"", is_last=True))

        pair.forwarded = Forwarded(self._ports, pair.port, on_data, on_end)

    async def _take(self, data: Data) -> None:
        pair = self._pairs.get(self._streams.get(data.stream, ""))
        if pair and pair.forwarded and data.stream == pair.data:
            if data.data:
                await pair.forwarded.send(data.data)
            if data.is_last:
                await pair.forwarded.send_end()

    def _reset(self, stream: int) -> None:
        request = self._streams.get(stream, "")
        pair = self._pairs.get(request)
        if pair and (stream == pair.data or not pair.data):
            if pair.forwarded:
                pair.forwarded.abort()
            self._forget(request)

    def _forget(self, request: str) -> None:
        pair = self._pairs.pop(request, None)
        if pair:
            self._streams.pop(pair.error, None)
            self._streams.pop(pair.data, None)

    async def _send(self, frame: bytes) -> None:
        await self._websocket.send_bytes(frame)


def _port(text: str) -> int | None:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
    return number if 0 < number < 65536 else None
