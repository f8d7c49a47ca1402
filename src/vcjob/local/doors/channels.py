"""Several streams on one WebSocket: the ``channel.k8s.io`` protocols of exec and attach.

The first byte of a message is the number of its stream. Version 4 tells the end of the program as a
Status object on the error stream, where the first version has a sentence; version 5 can also end
one stream. Source: Kubernetes KEP-4006, and the reference of ``PodExecOptions``.

Clients that speak SPDY instead (kubectl before 1.31) are refused with what they have to set.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

import msgspec
from aiohttp import WSMsgType, web

from vcjob.api.types import Object
from vcjob.local.apiserver.status import Refused

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
_CLOSE = 255

_VERSION_5 = "v5.channel.k8s.io"
_VERSION_4 = "v4.channel.k8s.io"
PROTOCOLS = (_VERSION_5, _VERSION_4, "channel.k8s.io")

_MOST_BYTES = 1 << 20
"""In one message; clients send some 32 KiB."""
_PING_SECONDS = 30.0
_CLOSE_SECONDS = 5.0


async def open_websocket(
    request: web.BaseRequest, protocols: Iterable[str]
) -> web.WebSocketResponse:
    """Agree on a protocol and upgrade the connection; raises Refused (400).

    A client that names no protocol speaks the last of them.
    """
    protocols = tuple(protocols)
    upgrade = request.headers.get("Upgrade", "").strip().lower()
    if upgrade.startswith("spdy/"):
        raise Refused(
            400,
            "SPDY is not spoken here, WebSocket is: use kubectl 1.31 or newer, or set "
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true (1.29, 1.30) and "
            "KUBECTL_PORT_FORWARD_WEBSOCKETS=true (1.30)",
        )
    if upgrade != "websocket":
        raise Refused(400, "Upgrade request required: ask for a WebSocket")
    offered = request.headers.get("Sec-WebSocket-Protocol", "")
    wanted = [name.strip() for name in offered.split(",") if name.strip()]
    if wanted and not set(wanted) & set(protocols):
        raise Refused(
            400,
            f"none of the protocols {', '.join(wanted)[:200]} is spoken here; these are: "
            f"{', '.join(protocols)}",
        )
    websocket = web.WebSocketResponse(
        protocols=protocols, max_msg_size=_MOST_BYTES, compress=False, timeout=_CLOSE_SECONDS
    )
    try:
        await websocket.prepare(request)
    except web.HTTPBadRequest as error:
        raise Refused(400, f"no WebSocket can be opened: {error.text}") from error
    return websocket


async def messages(websocket: web.WebSocketResponse) -> AsyncIterator[bytes]:
    """The messages of a client until it ends the connection; texts count as their bytes."""
    async for message in websocket:
        if message.type is WSMsgType.BINARY:
            yield message.data
        elif message.type is WSMsgType.TEXT:
            yield message.data.encode()


@contextlib.asynccontextmanager
async def noticed(websocket: web.WebSocketResponse) -> AsyncIterator[None]:
    """A client that vanishes is noticed meanwhile, although nothing is to be sent to it.

    Its answers are not waited for: they may stand behind input that the program does not take yet.
    """

    async def ping() -> None:
        with contextlib.suppress(ConnectionError):
            while not websocket.closed:
                await asyncio.sleep(_PING_SECONDS)
                await websocket.ping()

    pinging = asyncio.create_task(ping())
    try:
        yield
    finally:
        pinging.cancel()


class Channels:
    """The streams of one client. ConnectionError: it is gone."""

    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self._websocket = websocket
        self._version = websocket.ws_protocol

    async def send(self, channel: int, data: bytes) -> None:
        """Send on a stream, and wait while the client does not keep up; raises ConnectionError."""
        await self._websocket.send_bytes(bytes((channel,)) + data)

    async def received(self) -> AsyncIterator[tuple[int, bytes | None]]:
        """What the client sends: the stream, and the bytes (None: the stream has ended)."""
        async for message in messages(self._websocket):
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel == _CLOSE and self._version == _VERSION_5:
                if data:
                    yield data[0], None
            else:
                yield channel, data

    async def finish(self, status: Object) -> None:
        """Say how it ended, and close the connection."""
        with contextlib.suppress(ConnectionError):
            if self._version in (_VERSION_5, _VERSION_4):
                await self.send(ERROR, msgspec.json.encode(status))
            elif status["status"] != "Success":
                await self.send(ERROR, str(status["message"]).encode())
            await self._websocket.close()


def ended_well() -> Object:
    """The Status of a program that ended with exit code 0."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def ended_with(exit_code: int) -> Object:
    """The Status of a program that ended with this exit code."""
    if exit_code == 0:
        return ended_well()
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {exit_code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(exit_code)}]},
    }


def failed(message: str) -> Object:
    """The Status of something that the engine could not go on with."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "InternalError",
        "code": 500,
    }
