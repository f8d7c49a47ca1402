"""An engine that serves while the machine fails it: nothing that it answered is lost."""

import asyncio
import os
import resource
import select
import signal
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from cli_runs import environment, job, run, task

from vcjob.api.kinds import CONFIG_MAP, JOB, POD
from vcjob.api.types import Object
from vcjob.controller.cluster import ClusterError
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig

pytestmark = pytest.mark.local

WRITERS = 16
ANSWERED = 200
ROOM = 300_000  # bytes that a file may have


class Engine:
    """The engine of one test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = Path(environment(directory)["XDG_STATE_HOME"]) / "vcjob" / "engine"

    def start(self) -> None:
        started = run(self.directory, "engine", "start", "--detach")
        assert started.code == 0, started

    @property
    def pid(self) -> int:
        return int((self.home / "lock").read_text())

    def ask(self, question: Callable[[KubernetesCluster], Awaitable[Any]]) -> Any:
        async def asking() -> Any:
            server = read_kubeconfig((self.home / "kubeconfig",))
            async with KubernetesCluster.of(server) as cluster:
                return await question(cluster)

        return asyncio.run(asyncio.wait_for(asking(), 50))

    def versions(self) -> dict[str, str]:
        """Names and resource versions of all ConfigMaps."""
        return dict(map(named, self.ask(lambda cluster: cluster.list(CONFIG_MAP)).items))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    tested = Engine(tmp_path)
    tested.start()
    yield tested
    ended = run(tmp_path, "engine", "stop", "--now")
    assert ended.code == 0, ended


def named(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["name"], obj["metadata"]["resourceVersion"]


def config_map(number: int, size: int = 100) -> Object:
    metadata = {"name": f"m-{number}", "namespace": "default"}
    return {"metadata": metadata, "data": {"x": "y" * size}}


def test_what_was_answered_survives_a_kill_in_the_middle_of_writes(engine: Engine) -> None:
    answered: dict[str, str] = {}
    killed = os.pidfd_open(engine.pid)

    async def write_until_killed(cluster: KubernetesCluster) -> None:
        numbers = count()

        async def write() -> None:
            while True:
                obj = await cluster.create(CONFIG_MAP, config_map(next(numbers)))
                answered.update([named(obj)])
                if len(answered) == ANSWERED:
                    signal.pidfd_send_signal(killed, signal.SIGKILL)

        ends = await asyncio.gather(*(write() for _ in range(WRITERS)), return_exceptions=True)
        assert all(isinstance(end, ClusterError) for end in ends), ends

    engine.ask(write_until_killed)
    select.select([killed], [], [])
    os.close(killed)
    engine.start()

    assert len(answered) >= ANSWERED
    found = engine.versions()
    assert {name: found.get(name) for name in answered} == answered


def test_without_room_writes_are_refused_and_go_on_when_there_is_some(engine: Engine) -> None:
    answered: dict[str, str] = {}
    unlimited = resource.prlimit(engine.pid, resource.RLIMIT_FSIZE)

    async def write_until_refused(cluster: KubernetesCluster) -> str:
        try:
            for number in count():
                obj = await cluster.create(CONFIG_MAP, config_map(number, size=10_000))
                answered.update([named(obj)])
        except ClusterError as error:
            return str(error)
        raise AssertionError("the numbers ended")

    resource.prlimit(engine.pid, resource.RLIMIT_FSIZE, (ROOM, unlimited[1]))
    try:
        assert "nothing was changed" in engine.ask(write_until_refused)
        assert 0 < len(answered) < ROOM / 10_000
        assert engine.versions() == answered  # it still answers, and shows nothing else
    finally:
        resource.prlimit(engine.pid, resource.RLIMIT_FSIZE, unlimited)

    obj = engine.ask(lambda cluster: cluster.create(CONFIG_MAP, config_map(10_000)))
    answered.update([named(obj)])
    assert engine.versions() == answered


def test_without_room_a_stop_ends_pods_and_engine_all_the_same(engine: Engine) -> None:
    async def run_a_pod(cluster: KubernetesCluster) -> None:
        runs = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.02; done")
        demo = job("demo", task("worker", runs))
        demo["metadata"]["namespace"] = "default"
        await cluster.create(JOB, demo)
        async for event in cluster.watch(POD, (await cluster.list(POD)).resource_version):
            if event.object.get("status", {}).get("phase") == "Running":
                return

    engine.ask(run_a_pod)
    resource.prlimit(engine.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    assert run(engine.directory, "engine", "stop").code == 0
    engine.start()
    [pod] = engine.ask(lambda cluster: cluster.list(POD)).items
    assert pod["status"]["reason"] == "NodeLost"  # nobody could write that it was stopped
