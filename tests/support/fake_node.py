"""A node whose containers end when the test says so, and an agent on it; no process is started."""

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from vcjob.api.kinds import EVENT, POD
from vcjob.api.types import Object
from vcjob.controller.clock import SystemClock
from vcjob.controller.cluster import NotFound
from vcjob.local.agent.agent import Agent
from vcjob.local.agent.log_files import LogFiles
from vcjob.local.agent.logs import Logs
from vcjob.local.agent.surroundings import AgentSettings, Surroundings
from vcjob.local.node.client import Entry, NodeRefused
from vcjob.local.node.identity import IdMaps, IdRange
from vcjob.local.node.messages import ContainerExited, StartContainer
from vcjob.local.sandbox.machine import Machine
from vcjob.local.sandbox.python import Python
from vcjob.local.store import Store
from vcjob.local.volumes.pod_volumes import VolumeWorld

NODE = "here"
_EVERY_NUMBER = (IdRange(0, 0, 2**32 - 1),)


class FakeNode:
    """Remembers what is asked, by pod name and container; ``exit`` ends a container."""

    def __init__(self) -> None:
        self.on_exit: Callable[[ContainerExited], None] = lambda exited: None
        self.starts: list[StartContainer] = []
        self.signals: list[tuple[str, signal.Signals]] = []
        self.removed: list[str] = []
        self.refuse: str = ""
        self.hold: asyncio.Future[None] | None = None
        """Where set, a start is answered when this is resolved."""
        self.asked = asyncio.Event()
        self.heeds = {signal.SIGTERM, signal.SIGKILL}
        self.running: dict[str, int] = {}
        self._changed = asyncio.Condition()

    async def remove_pod(self, uid: str, directories: Iterable[str] = ()) -> None:
        self.removed.append(uid)

    async def start_container(
        self, request: StartContainer, stdin: int, stdout: int, stderr: int
    ) -> None:
        self.asked.set()
        if self.hold:
            await self.hold
        if self.refuse:
            raise NodeRefused(self.refuse)
        self.starts.append(request)
        self.running[_container(request.container)] = os.dup(stdout)
        self._names = {_container(s.container): s.container for s in self.starts}
        async with self._changed:
            self._changed.notify_all()

    async def enter(self, container: str, command: Sequence[str], *rest: int, **more: Any) -> Entry:
        raise AssertionError("no programs inside here")

    async def signal_entry(self, entry: Entry, number: signal.Signals) -> None:
        raise AssertionError("no programs inside here")

    async def signal(self, container: str, number: signal.Signals) -> None:
        name = _container(container)
        self.signals.append((name, number))
        if number in self.heeds and name in self.running:
            self.exit(name, 128 + number)
        async with self._changed:
            self._changed.notify_all()

    async def mount(self, target: str, size: int = 0) -> None:
        raise AssertionError("no volume in memory here")

    async def open_socket(self, pod: str = "") -> socket.socket:
        raise NodeRefused("nothing can be reached")

    def exit(self, container: str, code: int, output: str = "", **facts: bool) -> None:
        """End a running container after it has printed ``output``."""
        writer = self.running.pop(container)
        os.write(writer, output.encode())
        os.close(writer)
        self.on_exit(ContainerExited(self._names[container], code, **facts))

    async def started(self, *containers: str, times: int = 1) -> None:
        """Wait until these were started so many times."""

        def are_there() -> bool:
            names = [_container(start.container) for start in self.starts]
            return all(names.count(name) >= times for name in containers)

        async with self._changed:
            await self._changed.wait_for(are_there)

    async def signalled(self, container: str, number: int) -> None:
        """Wait until a container was sent this signal."""
        async with self._changed:
            await self._changed.wait_for(lambda: (container, number) in self.signals)


class FakeNetwork:
    """Addresses in the order of asking."""

    def __init__(self) -> None:
        self.joined: list[str] = []
        self.left: list[str] = []
        self.told: list[Object] = []

    async def join(self, pod: Object) -> str:
        self.joined.append(pod["metadata"]["name"])
        return f"10.128.0.{len(self.joined) + 1}"

    async def leave(self, pod: Object) -> None:
        self.left.append(pod["metadata"]["name"])

    def tell_names(self, pod: Object) -> None:
        self.told.append(pod)


class Scene:
    """An agent at work on a store, a node and a network that only remember."""

    def __init__(self, cluster: Store, node: FakeNode, network: FakeNetwork, agent: Agent) -> None:
        self.cluster = cluster
        self.node = node
        self.network = network
        self.agent = agent
        self.lines: list[tuple[str, bytes]] = []

    async def create(self, name: str = "p", **spec: Any) -> Object:
        """A pod that is bound to the node."""
        spec.setdefault("containers", [container("main")])
        body = {"metadata": {"name": name}, "spec": {"nodeName": NODE, **spec}}
        return await self.cluster.create(POD, body)

    async def pod(self, name: str = "p") -> Object:
        return await self.cluster.get(POD, "default", name)

    async def until(self, holds: Callable[[Object], object], name: str = "p") -> Object:
        """The pod once its status is as asked."""
        listed = await self.cluster.list(POD)
        for pod in listed.items:
            if pod["metadata"]["name"] == name and holds(pod["status"]):
                return pod
        async for event in self.cluster.watch(POD, listed.resource_version):
            if event.object["metadata"]["name"] == name and holds(event.object["status"]):
                return event.object
        raise AssertionError("watches do not end")

    async def phase(self, phase: str, name: str = "p") -> Object:
        """The pod once it is in a phase."""
        return await self.until(lambda status: status["phase"] == phase, name)

    async def gone(self, name: str = "p") -> None:
        """Wait until the pod's object is gone."""
        listed = await self.cluster.list(POD)
        with contextlib.suppress(NotFound):
            await self.pod(name)
            async for event in self.cluster.watch(POD, listed.resource_version):
                if event.type == "DELETED" and event.object["metadata"]["name"] == name:
                    return

    async def told(self, reason: str) -> str:
        """The message of an Event for this reason, once there is one."""
        async for event in self.cluster.watch(EVENT, "0"):
            if event.object["reason"] == reason:
                return str(event.object["message"])
        raise AssertionError("watches do not end")

    async def events(self) -> list[tuple[str, str]]:
        """Reason and message of every Event."""
        found = (await self.cluster.list(EVENT)).items
        return [(event["reason"], event["message"]) for event in found]


def statuses_at_starts(stage: Scene) -> list[Object]:
    """What is written of the pod whenever the node is told to start a container of it."""
    seen: list[Object] = []
    start = stage.node.start_container

    async def noted(*arguments: Any) -> None:
        seen.append((await stage.pod())["status"])
        await start(*arguments)

    stage.node.start_container = noted  # type: ignore[method-assign]
    return seen


Story = Callable[[Scene], Awaitable[None]]


def play(directory: Path, story: Story, **settings: object) -> None:
    """Have a story happen in a scene of its own."""

    async def main() -> None:
        async with scene(directory, **settings) as stage:
            await asyncio.wait_for(story(stage), 20)

    asyncio.run(main())


def container(name: str, *command: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "none", "command": list(command) or ["work"], **more}


@contextlib.asynccontextmanager
async def scene(directory: Path, **settings: Any) -> AsyncIterator[Scene]:
    """An agent that runs; what fails in it fails the test."""
    cluster, node, network = Store(SystemClock().now), FakeNode(), FakeNetwork()
    problems: deque[str] = deque()
    lines: list[tuple[str, bytes]] = []
    maps = IdMaps(_EVERY_NUMBER, _EVERY_NUMBER)
    pods = directory / "pods"
    pods.mkdir()
    surroundings = Surroundings(
        cluster=cluster,
        node=node,
        network=network,
        logs=Logs(
            LogFiles(str(directory / "logs"), problems.append),
            lambda namespace, pod, name, line: lines.append((name, line)),
        ),
        machine=Machine((), (), Python("/usr/bin/python3", ()), list=lambda path: ()),
        volumes=VolumeWorld(str(directory / "claims"), maps),
        clock=SystemClock(),
        settings=msgspec.structs.replace(AgentSettings(NODE, "10.128.0.1", pods), **settings),
    )
    agent = Agent(surroundings)
    found = Scene(cluster, node, network, agent)
    found.lines = lines
    working = asyncio.create_task(agent.run())
    try:
        yield found
        assert not working.done(), working.exception()
    finally:
        working.cancel()
        await asyncio.wait([working])
        for writer in node.running.values():
            os.close(writer)
        surroundings.logs.close()
    assert not problems


def _container(run: str) -> str:
    """``uid/container/restart`` without the rest."""
    return run.split("/")[1]
