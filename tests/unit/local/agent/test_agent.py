"""Pods seen through by the agent on a node that only writes down what it is asked."""

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, EVENT, POD
from vcjob.api.types import Object
from vcjob.controller.clock import SystemClock
from vcjob.controller.cluster import NotFound
from vcjob.local.agent import full_disk
from vcjob.local.agent.agent import Agent
from vcjob.local.agent.logs import LogFiles, Logs
from vcjob.local.agent.pod_files import PodFiles
from vcjob.local.agent.surroundings import AgentSettings, Surroundings
from vcjob.local.node.client import NodeRefused
from vcjob.local.node.identity import IdMaps, IdRange
from vcjob.local.node.messages import ContainerExited, StartContainer
from vcjob.local.sandbox.machine import Machine
from vcjob.local.sandbox.python import Python
from vcjob.local.store import Store
from vcjob.local.volumes.pod_volumes import VolumeWorld

NODE_NAME = "node"
ALL_IDS = (IdRange(0, 0, 65536),)


class FakeNode:
    """Runs nothing. A test ends containers; by itself one ends at a signal it does not ignore."""

    def __init__(self) -> None:
        self.on_exit: Callable[[ContainerExited], None] = lambda exited: None
        self.started: dict[str, StartContainer] = {}
        self.running: set[str] = set()
        self.signals: list[tuple[str, int]] = []
        self.removed: list[str] = []
        self.ignoring: set[str] = set()
        self.refusing = ""
        self.changed = asyncio.Event()

    async def remove_pod(self, uid: str, directories: Iterable[str] = ()) -> None:
        self.removed.append(uid)

    async def start_container(
        self, request: StartContainer, stdin: int, stdout: int, stderr: int
    ) -> None:
        if self.refusing:
            raise NodeRefused(self.refusing)
        os.write(stdout, f"hello from {request.command[0]}\n".encode())
        name = request.container.partition("/")[2]
        self.started[name] = request
        self.running.add(name)
        self.changed.set()

    async def signal(self, container: str, number: signal.Signals) -> None:
        name = container.partition("/")[2]
        self.signals.append((name, number))
        if number == signal.SIGKILL or name not in self.ignoring:
            self.end(name, 128 + number)

    async def mount(self, target: str, size: int = 0) -> None:
        raise AssertionError("no test has a volume in memory")

    async def open_socket(self, pod: str = "") -> socket.socket:
        raise NodeRefused("nothing can be reached")

    def end(self, name: str, exit_code: int = 0) -> None:
        if name in self.running:
            self.running.discard(name)
            self.on_exit(ContainerExited(self.started[name].container, exit_code))


class FakeNetwork:
    def __init__(self) -> None:
        self.joined: list[str] = []
        self.left: list[str] = []

    async def join(self, pod: Object) -> str:
        self.joined.append(pod["metadata"]["name"])
        return f"10.128.0.{len(self.joined) + 1}"

    async def leave(self, pod: Object) -> None:
        self.left.append(pod["metadata"]["name"])

    def tell_names(self, pod: Object) -> None:
        pass


class World:
    """An agent at work on a store."""

    def __init__(self, directory: Path) -> None:
        self.store = Store(time.time)
        self.node = FakeNode()
        self.network = FakeNetwork()
        pods = directory / "pods"
        pods.mkdir()
        lines: list[bytes] = []
        files = LogFiles(str(directory / "logs"), lambda text: None)
        self.lines = lines
        self.agent = Agent(
            Surroundings(
                cluster=self.store,
                node=self.node,
                network=self.network,
                logs=Logs(files, lambda ns, pod, container, line: lines.append(line)),
                machine=Machine((), (), Python(sys.executable, ()), list=lambda path: ()),
                volumes=VolumeWorld(str(directory / "claims"), IdMaps(ALL_IDS, ALL_IDS)),
                clock=SystemClock(),
                settings=AgentSettings(NODE_NAME, "10.128.0.1", pods, back_off_seconds=0.01),
            )
        )

    async def create(self, name: str = "pod", **spec: Any) -> Object:
        spec.setdefault("containers", [container("main")])
        pod = {
            "metadata": {"name": name},
            "spec": {"nodeName": NODE_NAME, "restartPolicy": "Never", **spec},
        }
        return await self.store.create(POD, pod)

    async def until(self, seen: Callable[[Object], bool]) -> Object:
        """The pod, once it is as wanted."""
        async with asyncio.timeout(20):
            while True:
                pod = await self.store.get(POD, "default", "pod")
                if seen(pod):
                    return pod
                await anext(aiter(self.store.watch(POD, pod["metadata"]["resourceVersion"])))

    async def until_running(self, name: str) -> None:
        async with asyncio.timeout(20):
            while name not in self.node.running:
                self.node.changed.clear()
                await self.node.changed.wait()

    async def until_gone(self) -> None:
        async with asyncio.timeout(20):
            while True:
                try:
                    pod = await self.store.get(POD, "default", "pod")
                except NotFound:
                    return
                version = pod["metadata"]["resourceVersion"]
                await anext(aiter(self.store.watch(POD, version)))

    async def told(self, reason: str) -> str:
        """The message of an Event for this reason, once there is one."""
        async with asyncio.timeout(20):
            async for event in self.store.watch(EVENT, "0"):
                if event.object["reason"] == reason:
                    return str(event.object["message"])
        raise AssertionError("the watch ended")

    async def events(self) -> list[tuple[str, str]]:
        found = (await self.store.list(EVENT)).items
        return [(event["reason"], event["message"]) for event in found]


def container(name: str, **more: Any) -> Object:
    return {"name": name, "image": "none", "command": [f"run-{name}"], **more}


def phase(wanted: str) -> Callable[[Object], bool]:
    return lambda pod: bool(pod["status"]["phase"] == wanted)


def in_a_world(directory: Path, test: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World(directory)
        work = asyncio.create_task(world.agent.run())
        try:
            await test(world)
        finally:
            work.cancel()
            await asyncio.wait([work])
            for name in tuple(world.node.running):
                world.node.end(name)
        if not work.cancelled():
            work.result()

    asyncio.run(main())


def test_a_pod_runs_and_succeeds_and_everything_is_given_back(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        created = await world.create()
        await world.until_running("main/0")
        running = await world.until(phase("Running"))
        assert running["status"]["podIP"] == "10.128.0.2"
        assert running["status"]["containerStatuses"][0]["ready"]
        world.node.end("main/0")
        done = await world.until(phase("Succeeded"))
        state = done["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["reason"]) == (0, "Completed")
        await world.agent.drain()
        assert world.node.removed == [created["metadata"]["uid"]]
        assert world.network.left == ["pod"]
        assert world.lines == [b"hello from run-main"]

    in_a_world(tmp_path, test)


def test_init_containers_run_one_after_another_before_the_others(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create(
            initContainers=[container("a"), container("b")],
            containers=[container("c"), container("d")],
        )
        for name in ("a", "b"):
            await world.until_running(f"{name}/0")
            assert world.node.running == {f"{name}/0"}
            world.node.end(f"{name}/0")
        await world.until_running("c/0")
        await world.until_running("d/0")
        for name in ("c", "d"):
            world.node.end(f"{name}/0")
        await world.until(phase("Succeeded"))

    in_a_world(tmp_path, test)


def test_a_failed_init_container_fails_a_pod_that_never_restarts(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create(initContainers=[container("a")])
        await world.until_running("a/0")
        world.node.end("a/0", 3)
        await world.until(phase("Failed"))
        assert "main/0" not in world.node.started

    in_a_world(tmp_path, test)


def test_a_sidecar_starts_before_and_is_ended_after_the_main_containers(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create(initContainers=[container("side", restartPolicy="Always")])
        await world.until_running("main/0")
        assert "side/0" in world.node.running
        world.node.end("main/0")
        await world.until(phase("Succeeded"))
        assert world.node.signals == [("side/0", signal.SIGTERM)]

    in_a_world(tmp_path, test)


def test_on_failure_a_container_is_started_again_until_it_succeeds(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create(restartPolicy="OnFailure")
        for attempt in range(3):
            await world.until_running(f"main/{attempt}")
            world.node.end(f"main/{attempt}", 1)
        await world.until_running("main/3")
        world.node.end("main/3")
        done = await world.until(phase("Succeeded"))
        (status,) = done["status"]["containerStatuses"]
        assert status["restartCount"] == 3
        assert status["lastState"]["terminated"]["exitCode"] == 1
        assert any(reason == "BackOff" for reason, _ in await world.events())

    in_a_world(tmp_path, test)


@pytest.mark.parametrize("ignores", [False, True])
def test_deletion_sends_sigterm_and_sigkill_only_to_who_does_not_listen(
    tmp_path: Path, ignores: bool
) -> None:
    async def test(world: World) -> None:
        await world.create(terminationGracePeriodSeconds=1 if ignores else 600)
        await world.until_running("main/0")
        if ignores:
            world.node.ignoring.add("main/0")
        await world.store.delete(POD, "default", "pod")
        await world.until_gone()
        signals = [number for _, number in world.node.signals]
        assert signals == [signal.SIGTERM, *([signal.SIGKILL] if ignores else [])]

    in_a_world(tmp_path, test)


def test_a_failing_pre_stop_hook_is_told_and_the_container_ended_all_the_same(
    tmp_path: Path,
) -> None:
    async def test(world: World) -> None:
        hook = {"preStop": {"httpGet": {"port": 80}}}
        await world.create(containers=[container("main", lifecycle=hook)])
        await world.until_running("main/0")
        await world.until(phase("Running"))
        await world.store.delete(POD, "default", "pod")
        await world.until_gone()
        assert world.node.signals == [("main/0", signal.SIGTERM)]
        assert ("FailedPreStopHook", "main: preStop hook: nothing can be reached") in (
            await world.events()
        )

    in_a_world(tmp_path, test)


def test_a_container_whose_post_start_hook_fails_is_ended(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        hook = {"postStart": {"tcpSocket": {"port": 80}}, "stopSignal": "SIGINT"}
        await world.create(containers=[container("main", lifecycle=hook)])
        failed = await world.until(phase("Failed"))
        assert world.node.signals == [("main/0", signal.SIGINT)]
        assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 130

    in_a_world(tmp_path, test)


def test_a_pod_whose_object_vanishes_is_killed_at_once(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create()
        await world.until_running("main/0")
        await world.store.delete(POD, "default", "pod", grace_period_seconds=0)
        await world.agent.drain()
        assert world.node.signals == [("main/0", signal.SIGKILL)]

    in_a_world(tmp_path, test)


@pytest.mark.parametrize("shorter", [0, 1])
def test_a_second_deletion_shortens_the_grace_of_a_pod_that_is_ending(
    tmp_path: Path, shorter: int
) -> None:
    async def test(world: World) -> None:
        asked = asyncio.Event()
        world.node.ignoring.add("main/0")
        send = world.node.signal

        async def tell(container: str, number: signal.Signals) -> None:
            await send(container, number)
            asked.set()

        world.node.signal = tell  # type: ignore[method-assign]
        await world.create(terminationGracePeriodSeconds=600)
        await world.until_running("main/0")
        await world.store.delete(POD, "default", "pod")
        await asked.wait()
        await world.store.delete(POD, "default", "pod", grace_period_seconds=shorter)
        await world.agent.drain()
        assert world.node.signals == [("main/0", signal.SIGTERM), ("main/0", signal.SIGKILL)]

    in_a_world(tmp_path, test)


def test_a_pod_that_ended_is_deleted_without_waiting(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create()
        await world.until_running("main/0")
        world.node.end("main/0")
        await world.agent.drain()
        await world.store.delete(POD, "default", "pod")
        await world.until_gone()
        assert world.node.signals == []

    in_a_world(tmp_path, test)


def test_a_deadline_fails_the_pod(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create(activeDeadlineSeconds=1)
        failed = await world.until(phase("Failed"))
        assert failed["status"]["reason"] == "DeadlineExceeded"
        assert world.node.signals == [("main/0", signal.SIGTERM)]

    in_a_world(tmp_path, test)


def test_a_container_waits_for_a_config_map_and_says_so(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        key = {"configMapKeyRef": {"name": "settings", "key": "answer"}}
        env = [{"name": "ANSWER", "valueFrom": key}]
        await world.create(containers=[container("main", env=env)])
        await world.until(lambda pod: "CreateContainerConfigError" in str(pod["status"]))
        data = {"metadata": {"name": "settings"}, "data": {"answer": "42"}}
        await world.store.create(CONFIG_MAP, data)
        await world.until_running("main/0")
        options = world.node.started["main/0"].options
        assert options[options.index("ANSWER") + 1] == "42"
        assert any("settings" in message for _, message in await world.events())

    in_a_world(tmp_path, test)


def test_a_container_that_the_node_cannot_start_has_ended_with_128(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.node.refusing = "no room"
        await world.create()
        failed = await world.until(phase("Failed"))
        state = failed["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["reason"], state["message"]) == (
            128, "StartError", "no room",
        )  # fmt: skip

    in_a_world(tmp_path, test)


@pytest.mark.parametrize(
    ("step", "reason"), [("make", "FailedMount"), ("message_mounts", "Failed")]
)
def test_a_full_disk_is_told_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, reason: str
) -> None:
    works = getattr(PodFiles, step)
    full = True

    def make(*arguments: Any) -> Any:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return works(*arguments)

    async def test(world: World) -> None:
        nonlocal full
        monkeypatch.setattr(full_disk, "_AGAIN_SECONDS", 0.001)
        monkeypatch.setattr(PodFiles, step, make)
        await world.create()
        assert os.strerror(errno.ENOSPC) in await world.told(reason)
        full = False
        await world.until(phase("Running"))
        assert [of for of, _ in await world.events()].count(reason) == 1

    in_a_world(tmp_path, test)


def test_a_volume_that_cannot_be_fails_the_pod_with_the_reason(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        mounts = [{"name": "data", "mountPath": "/data"}]
        volumes = [{"name": "data", "hostPath": {"path": "/somewhere"}}]
        await world.create(containers=[container("main", volumeMounts=mounts)], volumes=volumes)
        failed = await world.until(phase("Failed"))
        assert "--allow-host-path" in str(failed["status"])

    in_a_world(tmp_path, test)


def test_pods_of_other_nodes_are_left_alone(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.create(nodeName="elsewhere")
        await world.create("second")
        await world.until_running("main/0")
        assert world.network.joined == ["second"]

    in_a_world(tmp_path, test)
