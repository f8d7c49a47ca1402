"""The pods' network as the agent uses it: addresses, the packet filter, and names, kept in step.

The filter knows a pod before its network exists, so that no packet passes unfiltered. A pod's name
is told to the name server as soon as its status says that it may be (address, readiness).
"""

import asyncio
import contextlib
import socket
from ipaddress import IPv4Address
from typing import Protocol

from vcjob.api.kinds import NAMESPACE, NETWORK_POLICY, POD, SERVICE
from vcjob.api.types import Key, Object, key_of
from vcjob.controller.cluster import Cluster
from vcjob.local.following import follow
from vcjob.local.names.records import Zone
from vcjob.local.names.server import encode_update
from vcjob.local.network.addresses import AddressPool
from vcjob.local.network.nftables import encode_update as encode_filter
from vcjob.local.network.policy import PolicyTable


class NetworkNode(Protocol):
    """What is needed of the node process (``NodeClient``)."""

    async def add_pod(self, uid: str, address: str, group: int) -> None:
        """Make a pod's network namespace."""

    async def set_policy(self, rules: bytes) -> None:
        """Change the packet filter."""


class Networking:
    """Addresses, policy and names of the pods of one run.

    Args:
        cluster: where the objects live.
        node: the node process.
        name_server: our end of the name server's feed, None to tell it nothing.
    """

    def __init__(
        self, cluster: Cluster, node: NetworkNode, name_server: socket.socket | None
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._addresses = AddressPool()
        self._taken: dict[str, tuple[Key, IPv4Address]] = {}
        self._table = PolicyTable()
        self._policies: dict[Key, str] = {}
        self._zone = Zone()
        self._told: dict[Key, int] = {}
        self._feed = _Feed(name_server) if name_server else None

    async def run(self) -> None:
        """Follow policies, namespaces, Services and pods until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow(self._cluster, NETWORK_POLICY, self._take_policy))
            tasks.create_task(follow(self._cluster, NAMESPACE, self._take_namespace))
            tasks.create_task(follow(self._cluster, SERVICE, self._take_service))
            tasks.create_task(follow(self._cluster, POD, self._take_pod))

    async def name_server_ended(self) -> None:
        """Return when the name server has ended, which it does by itself with the node only."""
        if self._feed:
            await self._feed.ended.wait()
        else:
            await asyncio.Event().wait()

    def close(self) -> None:
        """End the name server's feed, and with it the name server."""
        if self._feed:
            self._feed.close()

    async def join(self, pod: Object) -> str:
        """Give a pod an address and its network namespace; returns the address.

        Raises SubnetFull, NodeRefused, NodeGone.
        """
        key, uid = key_of(pod), pod["metadata"]["uid"]
        address = self._addresses.take()
        self._taken[uid] = (key, address)
        # Policies that exist hold from the first packet, even if their watch event is on its way.
        for policy in (await self._cluster.list(NETWORK_POLICY, key[0])).items:
            self._enter_policy(policy)
        group = self._table.set_pod(pod, str(address))
        await self._update_filter()
        await self._node.add_pod(uid, str(address), group)
        return str(address)

    async def leave(self, pod: Object) -> None:
        """Forget a pod whose network the node has taken away."""
        taken = self._taken.pop(pod["metadata"]["uid"], None)
        if taken is None:
            return
        (namespace, name), address = taken
        if not any(key == (namespace, name) for key, _ in self._taken.values()):
            self._table.remove_pod(namespace, name)
        await self._update_filter()
        self._addresses.release(address)

    def tell_names(self, pod: Object) -> None:
        """Let names follow a pod's status now, before its watch event comes by."""
        self._told[key_of(pod)] = _version(pod)
        self._zone.set_pod(pod)
        self._update_names()

    async def _update_filter(self) -> None:
        # No await between taking and calling: updates reach the node in the order they were taken.
        if update := self._table.take_update():
            await self._node.set_policy(encode_filter(update))

    def _update_names(self) -> None:
        update = self._zone.take_update()
        if update and self._feed:
            self._feed.send(encode_update(update))

    def _enter_policy(self, policy: Object) -> None:
        key, version = key_of(policy), policy["metadata"].get("resourceVersion", "")
        if self._policies.get(key) != version:
            self._policies[key] = version
            self._table.set_policy(policy)

    async def _take_policy(self, policy: Object, gone: bool) -> None:
        if gone:
            self._policies.pop(key_of(policy), None)
            self._table.remove_policy(*key_of(policy))
        else:
            self._enter_policy(policy)
        await self._update_filter()

    async def _take_namespace(self, namespace: Object, gone: bool) -> None:
        if gone:
            self._table.remove_namespace(namespace["metadata"]["name"])
        else:
            self._table.set_namespace(namespace)
        await self._update_filter()

    def _take_service(self, service: Object, gone: bool) -> None:
        if gone:
            self._zone.remove_service(*key_of(service))
        else:
            self._zone.set_service(service)
        self._update_names()

    async def _take_pod(self, pod: Object, gone: bool) -> None:
        if _version(pod) < self._told.get(key_of(pod), 0):
            return  # names are ahead of this event: going back would make them vanish for a moment
        if gone:
            self._told.pop(key_of(pod), None)
            self._zone.remove_pod(*key_of(pod))
        else:
            self._zone.set_pod(pod)
            taken = self._taken.get(pod["metadata"]["uid"])
            if taken:  # its labels may have changed
                self._table.set_pod(pod, str(taken[1]))
                await self._update_filter()
        self._update_names()


def _version(obj: Object) -> int:
    """The order of changes in the store of this machine, whose versions are numbers."""
    return int(obj["metadata"].get("resourceVersion") or 0)


class _Feed:
    """Sends to the name server in order, without waiting for it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        self._writing = False
        self.ended = asyncio.Event()
        connection.setblocking(False)
        self._loop.add_reader(connection, self._read_end)

    def _read_end(self) -> None:
        """The name server says nothing: what can be read is that it has ended."""
        self._loop.remove_reader(self._connection)
        self.ended.set()

    def send(self, data: bytes) -> None:
        self._unsent += data
        if not self._writing:
            self._flush()

    def close(self) -> None:
        self._loop.remove_reader(self._connection)
        if self._writing:
            self._loop.remove_writer(self._connection)
        self._connection.close()

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                try:
                    del self._unsent[: self._connection.send(self._unsent)]
                except (BrokenPipeError, ConnectionResetError):
                    self._unsent.clear()  # told by `ended`
        waiting = bool(self._unsent)
        if waiting != self._writing:
            self._writing = waiting
            if waiting:
                self._loop.add_writer(self._connection, self._flush)
            else:
                self._loop.remove_writer(self._connection)
