"""The controller of the local engine, unchanged, through an API server."""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from cutting_proxy import Cuts, cutting_proxy
from played_cluster import Face, Proxy, serve
from stammering_proxy import FAULTS, Stammer, stammering_proxy

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import CONFIG_MAP, EVENT, JOB, POD, SERVICE
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.controller import caches
from vcjob.controller.cluster import Cluster, EventType
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.operating import OperatorCluster
from vcjob.kubernetes.retrying import Patience
from vcjob.kubernetes.scope import Scope


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


HASTY = Patience(first=0.01, longest=0.1)
IN_ONE_NAMESPACE = Scope("default", cluster_scoped=False)
CLUSTERS: dict[str, Callable[[KubernetesCluster], Cluster]] = {
    "direct": lambda cluster: cluster,
    "operator": lambda cluster: OperatorCluster(cluster, patience=HASTY),
    "one namespace": lambda cluster: OperatorCluster(cluster, IN_ONE_NAMESPACE, patience=HASTY),
}


@pytest.mark.parametrize("around", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_job_lives_through_http_as_it_does_in_the_engine(
    exit_code: int, around: Callable[[KubernetesCluster], Cluster]
) -> None:
    async def story() -> None:
        face = Face()
        async with serve(face, around=around) as server, KubernetesCluster.of(server) as cluster:
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


@pytest.fixture
def hasty_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(caches, "_LONGEST_PAUSE_SECONDS", 0.1)


@pytest.mark.parametrize("around", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("hasty_caches")
def test_connections_that_break_anywhere_change_nothing_about_a_job(
    seed: int,
    around: Callable[[KubernetesCluster], Cluster],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Through this proxy a list of so many pods passes never, and watches only in pieces.
    monkeypatch.setattr(caches, "_WATCH_TRIES", 10**9)
    cuts = Cuts(random.Random(seed), longest=12_000)
    asyncio.run(job_that_restarts(partial(cutting_proxy, cuts=cuts), around))
    assert cuts.made >= 20, "the proxy did not do its work"


@pytest.mark.parametrize("around", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("hasty_caches")
def test_watches_that_stammer_change_nothing_about_a_job(
    seed: int, around: Callable[[KubernetesCluster], Cluster]
) -> None:
    stammer = Stammer(random.Random(seed), 0.3)
    asyncio.run(job_that_restarts(partial(stammering_proxy, stammer=stammer), around))
    assert all(stammer.made[fault] >= 3 for fault in FAULTS), stammer.made


async def job_that_restarts(through: Proxy, around: Callable[[KubernetesCluster], Cluster]) -> None:
    """A Job of 21 pods fails once and completes, whatever is between controller and server."""
    face = Face()
    async with serve(face, through, around):
        made, running = 0, set[str]()
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        await face.store.create(JOB, job(workers=20, policies=policies, maxRetry=3))
        async for event in face.store.watch(POD, "0"):
            if event.type is EventType.ADDED:
                made += 1
            if event.object["status"]["phase"] == "Running":
                running.add(event.object["metadata"]["name"])
            if len(running) == 21:
                break
        await face.end_pod("mnist-worker-7", 3)
        async for event in face.store.watch(JOB, "0"):
            status = event.object.get("status") or {}
            if status.get("retryCount") and status["state"]["phase"] == "Running":
                break
        pods = [pod["metadata"]["name"] for pod in (await face.store.list(POD)).items]
        for pod in pods:
            await face.end_pod(pod)
        async for event in face.store.watch(JOB, "0"):
            status = event.object.get("status") or {}
            if status.get("state", {}).get("phase") == "Completed":
                break
    assert made <= 21
    assert len(pods) == 21
    assert (status["succeeded"], status["retryCount"]) == (21, 1)
