"""An engine without its scheduler: PodGroups and pods wait for one of the user's own."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from cli_runs import environment, job, run, task

from vcjob.api.kinds import JOB, POD, POD_GROUP
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.connection import object_path
from vcjob.kubernetes.errors import Asked
from vcjob.kubernetes.kubeconfig import read_kubeconfig

pytestmark = pytest.mark.local
NODE = "this-machine"


async def bind(cluster: KubernetesCluster, pod: Object) -> None:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}}
    await cluster.connection.request(
        "POST",
        object_path(POD, namespace, name, "binding"),
        Asked("create", POD, namespace, name, "binding"),
        body=msgspec.json.encode(binding),
    )


async def schedule(config: Path) -> str:
    """Run a Job, be its scheduler, and return its last phase."""
    async with KubernetesCluster.of(read_kubeconfig((config,))) as cluster, asyncio.timeout(40):
        await cluster.create(JOB, job("mine", task("worker", ["true"], 2)))
        async for _, group in changes(cluster, POD_GROUP, "default"):
            assert not (await cluster.list(POD, "default")).items
            admitted = {"status": {"phase": "Inqueue"}}
            await cluster.patch(POD_GROUP, "default", group["metadata"]["name"], admitted)
            break
        bound = 0
        async for _, pod in changes(cluster, POD, "default"):
            if not pod["spec"].get("nodeName"):
                await bind(cluster, pod)
                bound += 1
            if bound == 2:
                break
        async for _, obj in changes(cluster, JOB, "default"):
            phase = str(((obj.get("status") or {}).get("state") or {}).get("phase"))
            if phase in ("Completed", "Failed"):
                return phase
    raise AssertionError("watches do not end")


def test_pods_run_once_they_are_bound_to_this_machine(tmp_path: Path) -> None:
    started = run(tmp_path, "engine", "start", "--detach", "--no-scheduler")
    assert started.code == 0, started
    try:
        home = Path(environment(tmp_path)["XDG_STATE_HOME"]) / "vcjob" / "engine"
        assert asyncio.run(schedule(home / "kubeconfig")) == "Completed"
    finally:
        run(tmp_path, "engine", "stop", "--now")
