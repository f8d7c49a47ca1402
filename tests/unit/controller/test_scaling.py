"""Scaling: what pods read of each other is there before the pods that it is about."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from faults import Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import CONFIG_MAP, POD, POD_GROUP, SECRET, Kind
from vcjob.api.types import Object

PLUGINS = ("env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "hcclrank")
Story = Callable[[Simulation], Awaitable[None]]


def job(**worker: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [
        {"name": "master", "replicas": 1, "minAvailable": 1, "template": template},
        {"name": "worker", "replicas": 2, "minAvailable": 2, "template": template, **worker},
    ]
    volumes = [{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteMany"]}}]
    plugins: Object = {name: [] for name in PLUGINS}
    spec = {
        "tasks": tasks, "plugins": plugins, "volumes": volumes, "minAvailable": 3,
        "policies": [{"event": "PodEvicted", "action": "TerminateJob"}],
    }  # fmt: skip
    return apply_defaults({"metadata": {"name": "lc"}, "spec": spec})


async def scale(world: Simulation, workers: int, **worker: Any) -> None:
    master, old = (await world.job("lc"))["spec"]["tasks"]
    new = {**old, "replicas": workers, "minAvailable": workers, **worker}
    patch = {"spec": {"tasks": [master, new], "minAvailable": workers + 1}}
    await world.patch_job("lc", patch)


async def while_running(world: Simulation) -> None:
    await world.run_all()
    await scale(world, 5)


async def while_pending(world: Simulation) -> None:
    await scale(world, 5)


async def before_all_pods_run(world: Simulation) -> None:
    await world.admit()
    await world.settle()
    await world.run_pod("lc-master-0")
    await scale(world, 5)


async def while_restarting(world: Simulation) -> None:
    await world.run_all()
    await world.command("lc", "RestartJob")
    await world.settle(finish_pods=False)
    assert await world.phase("lc") == "Restarting"
    await scale(world, 5)


async def while_suspended(world: Simulation) -> None:
    await world.run_all()
    await world.command("lc", "AbortJob")
    await world.settle()
    await scale(world, 5)
    await world.settle()
    assert await world.pod_names() == []
    await world.command("lc", "ResumeJob")


async def twice_at_once(world: Simulation) -> None:
    await world.run_all()
    await scale(world, 7)
    await scale(world, 1)
    await world.settle(finish_pods=False)
    await scale(world, 5)


async def down_to_nothing_and_up(world: Simulation) -> None:
    await world.run_all()
    await scale(world, 0)
    await world.settle()
    assert await world.pod_names() == ["lc-master-0"]
    await scale(world, 5)


def in_partitions(story: Story) -> Story:
    async def told(world: Simulation) -> None:
        await story(world)
        await scale(world, 6, partitionPolicy={"totalPartitions": 3, "partitionSize": 2})

    return told


@pytest.mark.parametrize(
    ("worker", "story", "workers"),
    [
        *(
            ({}, story, 5)
            for story in (
                while_running, while_pending, before_all_pods_run, while_restarting,
                while_suspended, twice_at_once, down_to_nothing_and_up,
            )
        ),
        ({"dependsOn": {"name": ["master"]}}, before_all_pods_run, 5),
        ({"partitionPolicy": {"totalPartitions": 1, "partitionSize": 2}},
         in_partitions(while_running), 6),
    ],
)  # fmt: skip
def test_no_pod_comes_before_the_hosts_and_the_gang_that_it_belongs_to(
    worker: Object, story: Story, workers: int
) -> None:
    """Nor is a pod that scaling takes away taken for evicted, which would end the Job."""
    seen: dict[str, tuple[list[str], ...]] = {}
    gangs: dict[str, tuple[int, int]] = {}

    async def tell(world: Simulation) -> None:
        async def note(kind: Kind, pod: Object) -> None:
            if kind != POD:
                return
            name, spec = pod["metadata"]["name"], (await world.job("lc"))["spec"]
            wanted = [f"lc-worker-{index}" for index in range(spec["tasks"][1]["replicas"])]
            seen[name] = (wanted, await _listed(world), await _in_ssh_configuration(world))
            [group] = (await world.store.list(POD_GROUP)).items
            waits = "dependsOn" in worker and name == "lc-master-0"
            gangs[name] = (1 if waits else spec["minAvailable"], group["spec"]["minMember"])

        assert isinstance(world.cluster, Faulty)
        world.cluster.before_create.append(note)
        await world.create_job(job(**worker))
        await world.settle()
        await story(world)
        await world.settle()
        await world.run_all()
        await world.run_all()
        status = await world.status("lc")
        assert (status["state"]["phase"], status["running"]) == ("Running", workers + 1)
        assert len(await world.pod_names()) == workers + 1

    simulated(tell, wrap=Faulty)
    assert f"lc-worker-{workers - 1}" in seen
    for name, (wanted, *found) in seen.items():
        assert found == [wanted, wanted], name
    assert [pair for pair in gangs.values() if pair[0] != pair[1]] == []


async def _listed(world: Simulation) -> list[str]:
    files = (await world.store.get(CONFIG_MAP, "default", "lc-svc"))["data"]
    hosts: list[str] = [host.removesuffix(".lc") for host in files["worker.host"].split()]
    assert files["VC_WORKER_NUM"] == str(len(hosts))
    return hosts


async def _in_ssh_configuration(world: Simulation) -> list[str]:
    secret = await world.store.get(SECRET, "default", "lc-ssh")
    lines = base64.b64decode(secret["data"]["config"]).decode().splitlines()
    named = [line.split()[1] for line in lines if line.startswith("Host lc-worker-")]
    return [name for name in named if "*" not in name]


@pytest.mark.parametrize("end", ["CompleteJob", "TerminateJob"])
def test_a_job_that_has_ended_is_not_begun_anew_by_scaling(end: str) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.command("lc", end)
        await world.settle()
        before = (await world.status("lc"))["state"]
        for workers in (5, 0):
            await scale(world, workers)
            await world.settle()
            assert await world.pod_names() == []
            assert (await world.status("lc"))["state"] == before

    simulated(story)
