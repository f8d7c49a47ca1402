"""The controller of the local engine, unchanged, through an API server."""

import asyncio
from typing import Any

import pytest
from played_cluster import Face, serve

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import CONFIG_MAP, EVENT, JOB, POD, SERVICE
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.kubernetes.cluster import KubernetesCluster


def job(name: str = "mnist", workers: int = 2, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [{"name": "ps", "replicas": 1, "template": template},
             {"name": "worker", "replicas": workers, "template": template}]  # fmt: skip
    plugins = {"svc": [], "env": []}
    metadata = {"name": name, "namespace": "default"}
    return apply_defaults(
        {"metadata": metadata, "spec": {"tasks": tasks, "plugins": plugins, **spec}}
    )


async def until(cluster: KubernetesCluster, name: str, phase: str) -> Object:
    async for _, obj in changes(cluster, JOB, "default"):
        status = obj.get("status") or {}
        if obj["metadata"]["name"] == name and (status.get("state") or {}).get("phase") == phase:
            return obj
    raise AssertionError("the watch ended")


@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_job_lives_through_http_as_it_does_in_the_engine(exit_code: int) -> None:
    async def story() -> None:
        face = Face()
        async with serve(face) as server, KubernetesCluster.of(server) as cluster:
            policies = [{"event": "PodFailed", "action": "RestartJob"}]
            await cluster.create(JOB, job(policies=policies, maxRetry=1))
            await until(cluster, "mnist", "Running")
            assert await cluster.get(CONFIG_MAP, "default", "mnist-svc")
            assert await cluster.get(SERVICE, "default", "mnist")
            pods = {pod["metadata"]["name"] for pod in (await cluster.list(POD)).items}
            assert pods == {"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}
            for pod in sorted(pods):
                await face.end_pod(pod, exit_code)
            ended = await until(cluster, "mnist", "Failed" if exit_code else "Completed")
            assert ended["status"].get("retryCount", 0) == (1 if exit_code else 0)
            async for _, told in changes(cluster, EVENT):
                if told["reason"] == ("JobFailed" if exit_code else "JobCompleted"):
                    break

    asyncio.run(story())
