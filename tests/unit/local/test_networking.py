"""Addresses, packet filter and names kept in step: what the node and the name server are told."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

import msgspec

from vcjob.api.kinds import NETWORK_POLICY, POD, SERVICE
from vcjob.api.types import Object
from vcjob.local.names.records import Record, RecordKind, Update
from vcjob.local.networking import Networking
from vcjob.local.store import Store


class WritesDown:
    def __init__(self) -> None:
        self.calls: list[str] = []

    async def add_pod(self, uid: str, address: str, group: int) -> None:
        self.calls.append(f"pod {address} in {group}")

    async def set_policy(self, rules: bytes) -> None:
        self.calls.append("filter")


class World:
    def __init__(self) -> None:
        self.store = Store(time.time)
        self.node = WritesDown()
        ours, self.theirs = socket.socketpair()
        self.theirs.setblocking(False)
        self.network = Networking(self.store, self.node, ours)
        self.names: set[Record] = set()
        self.vanished: list[Record] = []
        self._unread = b""

    async def create_pod(self, name: str, labels: dict[str, str]) -> Object:
        metadata = {"name": name, "labels": labels}
        spec = {"hostname": name, "subdomain": "job", "containers": []}
        return await self.store.create(POD, {"metadata": metadata, "spec": spec})

    async def create_service(self) -> None:
        spec = {"clusterIP": "None", "selector": {"job": "j"}}
        await self.store.create(SERVICE, {"metadata": {"name": "job"}, "spec": spec})

    async def set_status(self, name: str, address: str, ready: bool) -> Object:
        condition = {"type": "Ready", "status": str(ready)}
        status = {"podIP": address, "phase": "Running", "conditions": [condition]}
        return await self.store.patch(
            POD, "default", name, {"status": status}, subresource="status"
        )

    async def until_published(self, name: str, address: str) -> None:
        wanted = Record(f"{name}.job.default.svc.cluster.local", RecordKind.A, address)
        async with asyncio.timeout(20):
            while wanted not in self.names:
                await self._receive()

    async def _receive(self) -> None:
        self._unread += await asyncio.get_running_loop().sock_recv(self.theirs, 1 << 16)
        while len(self._unread) >= 4:
            end = 4 + int.from_bytes(self._unread[:4], "big")
            if len(self._unread) < end:
                return
            update = msgspec.msgpack.decode(self._unread[4:end], type=Update)
            self._unread = self._unread[end:]
            self.vanished += update.removed
            self.names -= set(update.removed)
            self.names |= set(update.added)


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[World]:
    world = World()
    work = asyncio.create_task(world.network.run())
    try:
        yield world
    finally:
        work.cancel()
        await asyncio.wait([work])
        world.network.close()
        world.theirs.close()


def test_the_filter_knows_a_policy_before_the_pod_has_its_network() -> None:
    async def main() -> None:
        world = World()  # its watches do not run: nothing has been told of the policy
        selector = {"matchLabels": {"job": "j"}}
        policy = {"metadata": {"name": "np"}, "spec": {"podSelector": selector, "ingress": []}}
        await world.store.create(NETWORK_POLICY, policy)
        pod = await world.create_pod("a", {"job": "j"})
        assert await world.network.join(pod) == "10.128.0.2"
        assert world.node.calls == ["filter", "pod 10.128.0.2 in 1"]
        world.network.close()
        world.theirs.close()

    asyncio.run(main())


def test_an_address_is_not_given_again_at_once() -> None:
    async def main() -> None:
        world = World()
        first = await world.create_pod("a", {})
        address = await world.network.join(first)
        await world.network.leave(first)
        second = await world.create_pod("b", {})
        assert await world.network.join(second) != address
        world.network.close()
        world.theirs.close()

    asyncio.run(main())


def test_a_ready_pod_is_published_whichever_way_it_is_told() -> None:
    async def main() -> None:
        async with running() as world:
            await world.create_service()
            for name in ("watched", "told"):
                await world.create_pod(name, {"job": "j"})
            await world.set_status("watched", "10.128.0.2", True)
            world.network.tell_names(await world.set_status("told", "10.128.0.3", True))
            await world.until_published("watched", "10.128.0.2")
            await world.until_published("told", "10.128.0.3")

    asyncio.run(main())


def test_a_name_that_was_told_ahead_does_not_vanish_when_older_events_come_by() -> None:
    async def main() -> None:
        async with running() as world:
            await world.create_service()
            await world.create_pod("a", {"job": "j"})
            await world.set_status("a", "10.128.0.2", False)
            # The watch still has both older states before it.
            world.network.tell_names(await world.set_status("a", "10.128.0.2", True))
            await world.create_pod("later", {"job": "j"})
            await world.set_status("later", "10.128.0.3", True)
            await world.until_published("later", "10.128.0.3")
            await world.until_published("a", "10.128.0.2")
            assert world.vanished == []

    asyncio.run(main())
