"""The commands on real pods of the engine of this machine."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ended, Manifest, environment, job, run, task

from vcjob.api.kinds import JOB
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig

pytestmark = pytest.mark.local

WAITS = ("sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")


class Machine:
    """The engine of one test's state directory, and commands that find it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def vcjob(self, *arguments: str | Path, code: int = 0) -> Ended:
        ended = run(self.directory, *arguments)
        assert ended.code == code, ended
        return ended

    def create(self, manifest: Manifest) -> None:
        home = Path(environment(self.directory)["XDG_STATE_HOME"]) / "vcjob" / "engine"
        metadata = {"namespace": "default", **manifest["metadata"]}

        async def create() -> Any:
            async with KubernetesCluster.of(read_kubeconfig((home / "kubeconfig",))) as cluster:
                return await cluster.create(JOB, {**manifest, "metadata": metadata})

        asyncio.run(create())


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    machine.vcjob("engine", "start", "--detach")
    try:
        yield machine
    finally:
        machine.vcjob("engine", "stop")


def test_a_job_is_looked_at_scaled_suspended_resumed_and_deleted(machine: Machine) -> None:
    machine.create(job("mnist", task("ps", WAITS), task("worker", WAITS, 2)))
    machine.vcjob("wait", "mnist", "--for=phase=Running", "--timeout=30s")
    assert machine.vcjob("ls").out.splitlines()[1].split()[:3] == ["mnist", "Running", "3"]
    pods = [line.split()[:3] for line in machine.vcjob("ls", "mnist").out.splitlines()[1:]]
    assert pods == [[pod, "1/1", "Running"] for pod in ("ps-0", "worker-0", "worker-1")]
    machine.vcjob("scale", "mnist", "worker=1")
    assert "worker   1          1" in machine.vcjob("describe", "mnist").out
    machine.vcjob("suspend", "mnist")
    assert "Aborted" in machine.vcjob("wait", "mnist", "--timeout=30s", code=6).err
    machine.vcjob("resume", "mnist")
    machine.vcjob("wait", "mnist", "--for=phase=Running", "--timeout=30s")
    assert "ResumeJob" in machine.vcjob("events", "mnist").out
    machine.vcjob("delete", "mnist")
    assert machine.vcjob("get", "pods").err.startswith("vcjob: there are no pods")


def test_waiting_ends_with_the_jobs_own_code(machine: Machine) -> None:
    machine.create(job("fails", task("worker", ("sh", "-c", "exit 3"))))
    ended = machine.vcjob("wait", "fails", "--timeout=30s", code=1)
    assert "job fails is Failed" in ended.err
    assert "exit code 3" in machine.vcjob("describe", "fails").out
