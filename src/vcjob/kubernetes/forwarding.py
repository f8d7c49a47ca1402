"""Ports of pods on this machine: one WebSocket for each connection.

The protocol is ``v4.channel.k8s.io`` as the kubelet speaks it for port forwarding: channel 0
carries data, channel 1 an error, and each begins with two bytes that repeat the port. It cannot end
one direction only.
"""

import asyncio
import contextlib

import aiohttp

from vcjob.api.kinds import POD
from vcjob.controller.cluster import Unavailable
from vcjob.kubernetes.connection import Connection, object_path
from vcjob.kubernetes.errors import Asked

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PORT_BYTES = 2
_AT_ONCE = 32 * 1024
_LINGER_SECONDS = 30.0
"""How long a pod may be silent after our side has said all it has to say."""


async def forward(
    connection: Connection,
    namespace: str,
    pod: str,
    port: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Carry one connection to a port of a pod until either side ends it.

    Raises NotFound, Forbidden, Unavailable (nothing listens there, or the connection broke).
    """
    asked = Asked("create", POD, namespace, pod, "portforward")
    websocket = connection.websocket(
        object_path(POD, namespace, pod, "portforward"),
        asked,
        protocols=(_PROTOCOL,),
        query=[("ports", str(port))],
    )
    async with websocket as channel:
        sent_all = asyncio.Event()
        sending = asyncio.create_task(_send(channel, reader, sent_all))
        try:
            await _receive(channel, writer, sent_all)
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError, OSError):
                await sending


async def _send(
    channel: aiohttp.ClientWebSocketResponse, reader: asyncio.StreamReader, sent_all: asyncio.Event
) -> None:
    try:
        while piece := await reader.read(_AT_ONCE):
            await channel.send_bytes(bytes((_DATA,)) + piece)
    finally:
        sent_all.set()


async def _receive(
    channel: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter, sent_all: asyncio.Event
) -> None:
    begun: set[int] = set()
    while True:
        message = await _next(channel, sent_all)
        if message is None or message.type is not aiohttp.WSMsgType.BINARY:
            return
        number, content = message.data[0], message.data[1:]
        if number not in begun:
            begun.add(number)
            content = content[_PORT_BYTES:]
        if not content:
            continue
        if number == _ERROR:
            raise Unavailable(content.decode(errors="replace").strip())
        writer.write(content)
        try:
            await writer.drain()
        except ConnectionError:
            return  # who connected is gone


async def _next(
    channel: aiohttp.ClientWebSocketResponse, sent_all: asyncio.Event
) -> aiohttp.WSMessage | None:
    """The next message; None if none comes after our side has ended."""
    receiving = asyncio.ensure_future(channel.receive())
    ending = asyncio.ensure_future(sent_all.wait())
    try:
        await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not receiving.done():
            await asyncio.wait({receiving}, timeout=_LINGER_SECONDS)
        return receiving.result() if receiving.done() else None
    finally:
        ending.cancel()
        if not receiving.done():
            receiving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await receiving
