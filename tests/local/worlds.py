"""Worlds to test in: a node process whose pods have a network namespace with loopback only."""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Sequence
from fcntl import ioctl
from pathlib import Path

import msgspec

from vcjob.local.node import syscalls
from vcjob.local.node.client import NodeClient, start_node
from vcjob.local.node.etc_copy import etc_copy
from vcjob.local.node.messages import BindBelow, ContainerExited, StartContainer
from vcjob.local.node.options import NodeOptions
from vcjob.local.sandbox.launcher import ContainerSandbox, launch
from vcjob.local.sandbox.machine import Machine

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1


class LoopbackNetwork:
    """Namespaces without links: enough for everything but the network itself."""

    def __init__(self) -> None:
        self._namespaces: dict[str, int] = {}

    def add_pod(self, uid: str, address: str, group: int) -> int:
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            syscalls.unshare(syscalls.CLONE_NEWNET)
            with socket.socket() as s:
                ioctl(s, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
            self._namespaces[uid] = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            syscalls.setns(home, syscalls.CLONE_NEWNET)
            os.close(home)
        return self._namespaces[uid]

    def remove_pod(self, uid: str) -> None:
        os.close(self._namespaces.pop(uid))

    def set_policy(self, rules: bytes) -> None:
        pass


def loopback_network() -> tuple[LoopbackNetwork, tuple[int, ...]]:
    return LoopbackNetwork(), ()


class Ended(msgspec.Struct, frozen=True):
    """What a container printed (both streams) and how it ended."""

    output: str
    exited: ContainerExited


class Running:
    """A container that was started; its output is read as it comes."""

    def __init__(self, tester: "Pods", name: str, output: int) -> None:
        self.name = name
        self._tester = tester
        self._lines = asyncio.StreamReader()
        self._output = output

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(self._output, "rb", buffering=0)
        self._transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._lines), pipe
        )

    async def line(self) -> str:
        return (await self._lines.readline()).decode().rstrip("\n")

    async def ended(self) -> Ended:
        rest = await self._lines.read()
        exited = await self._tester.exit_of(self.name)
        self._transport.close()
        return Ended(rest.decode(errors="replace"), exited)


class Pods:
    """Starts containers on a node, one pod ``p`` unless told otherwise."""

    def __init__(self, node: NodeClient, machine: Machine) -> None:
        self.node = node
        self.machine = machine
        self._count = 0
        self._exits: dict[str, asyncio.Future[ContainerExited]] = {}
        node.on_exit = self._on_exit

    def _future(self, name: str) -> "asyncio.Future[ContainerExited]":
        return self._exits.setdefault(name, asyncio.get_running_loop().create_future())

    def _on_exit(self, exited: ContainerExited) -> None:
        self._future(exited.container).set_result(exited)

    async def exit_of(self, name: str) -> ContainerExited:
        return await self._future(name)

    async def start(
        self,
        command: Sequence[str],
        pod: str = "p",
        memory_limit: int = 0,
        process_limit: int = 256,
        extra: tuple[str | BindBelow, ...] = (),
        **settings: object,
    ) -> Running:
        self._count += 1
        name = f"c{self._count}"
        sandbox = msgspec.structs.replace(ContainerSandbox(hostname="test-pod"), **settings)
        reader, writer = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        request = StartContainer(
            container=name,
            pod=pod,
            options=(*launch(sandbox, self.machine), *extra),
            command=tuple(command),
            user=sandbox.user,
            group=sandbox.group,
            groups=sandbox.groups,
            process_limit=process_limit,
            memory_limit=memory_limit,
        )
        try:
            await self.node.start_container(request, null, writer, writer)
        finally:
            os.close(writer)
            os.close(null)
        running = Running(self, name, reader)
        await running.open()
        return running

    async def run(self, *command: str, **settings: object) -> Ended:
        return await (await self.start(command, **settings)).ended()  # type: ignore[arg-type]

    async def sh(self, script: str, **settings: object) -> Ended:
        return await self.run("sh", "-c", script, **settings)


@contextlib.asynccontextmanager
async def world(directory: Path, **settings: object) -> AsyncIterator[Pods]:
    """A node process with one pod ``p``; ended afterwards."""
    home = directory / "node"
    home.mkdir(mode=0o700, parents=True)
    node = await NodeClient.connect(start_node(NodeOptions(str(home)), loopback_network))
    try:
        await node.add_pod("p", "10.0.0.2", 1)
        machine = Machine.read(sys.executable, etc_copy(str(home)), **settings)  # type: ignore[arg-type]
        yield Pods(node, machine)
    finally:
        await node.close()
