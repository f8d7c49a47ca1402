"""``pods/portforward``: connections to ports of a pod.

kubectl has many connections on one WebSocket (``tunnel.py``). Other clients speak
``v4.channel.k8s.io`` and have one connection for each port that they name: two channels, for data
and for an error, each of which begins with the port in two bytes.
"""

import asyncio

from aiohttp import web

from vcjob.controller.cluster import Cluster
from vcjob.local.agent.surroundings import Node
from vcjob.local.apiserver import query
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.status import Refused
from vcjob.local.doors import tunnel
from vcjob.local.doors.channels import Channels, noticed, open_websocket
from vcjob.local.doors.ports import Forwarded, PodPorts
from vcjob.local.doors.targets import pod_at

_CHANNELS = "v4.channel.k8s.io"
_MOST_PORTS = 100


class ForwardDoor:
    """Answers requests for ``portforward``."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        self._cluster = cluster
        self._node = node

    async def __call__(
        self, request: web.BaseRequest, place: Place, asked: query.Query
    ) -> web.StreamResponse:
        """Carry connections until the client is gone; raises Refused (400, 404)."""
        pod = await pod_at(self._cluster, place)
        phase = (pod.get("status") or {}).get("phase") or "Pending"
        if phase != "Running":
            raise Refused(400, f"pod {place.name} is not running; it is {phase}")
        ports = _ports(request.rel_url.query.getall("ports", []))
        websocket = await open_websocket(request, (tunnel.PROTOCOL, _CHANNELS))
        reached = PodPorts(self._node, pod)
        try:
            async with noticed(websocket):
                if websocket.ws_protocol == tunnel.PROTOCOL:
                    await tunnel.Tunnel(websocket, reached).run()
                else:
                    await _carry(Channels(websocket), reached, ports)
        except ConnectionError:
            pass  # the client is gone
        await websocket.close()
        return websocket


async def _carry(channels: Channels, reached: PodPorts, ports: list[int]) -> None:
    """Carry one connection for each port, until all have ended or the client is gone."""
    for number, port in enumerate(ports):
        for channel in (2 * number, 2 * number + 1):
            await channels.send(channel, port.to_bytes(2, "little"))
    connections = [_forwarded(channels, reached, number, port) for number, port in enumerate(ports)]
    taking = asyncio.create_task(_take(channels, connections))
    ending = asyncio.gather(*(connection.ended() for connection in connections))
    try:
        await asyncio.wait((taking, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        taking.cancel()
        for connection in connections:
            connection.abort()
        await asyncio.gather(taking, ending, return_exceptions=True)


def _forwarded(channels: Channels, reached: PodPorts, number: int, port: int) -> Forwarded:
    async def on_data(data: bytes) -> None:
        await channels.send(2 * number, data)

    async def on_end(error: str) -> None:
        if error:
            await channels.send(2 * number + 1, error.encode())

    return Forwarded(reached, port, on_data, on_end)


async def _take(channels: Channels, connections: list[Forwarded]) -> None:
    async for channel, data in channels.received():
        number, is_error = divmod(channel, 2)
        if data and not is_error and number < len(connections):
            await connections[number].send(data)


def _ports(given: list[str]) -> list[int]:
    """The ports of the query, which may be lists; raises Refused (400)."""
    ports = []
    for text in ",".join(given).split(",") if given else ():
        if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
            raise Refused(400, f"ports must be numbers from 1 to 65535, not {text[:20]!r}")
        ports.append(int(text))
    if len(ports) > _MOST_PORTS:
        raise Refused(400, f"at most {_MOST_PORTS} ports can be forwarded by one request")
    return ports
