"""An object makes way for another of its name just before the controller writes: it is spared."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from faults import Fault, Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, POD, POD_GROUP, SERVICE, Kind
from vcjob.api.names import JOB_NAME
from vcjob.api.types import Object


def job(replicas: int = 2) -> Object:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    task = {"name": "worker", "replicas": replicas, "template": {"spec": spec}}
    whole: Any = {"tasks": [task], "plugins": {"svc": []}, "ttlSecondsAfterFinished": 10}
    return apply_defaults({"metadata": {"name": "lc"}, "spec": whole})


Arm = Callable[[], None]


async def scaled_down(world: Simulation, arm: Arm) -> None:
    arm()
    await world.patch_job("lc", {"spec": job(1)["spec"]})


async def restarted(world: Simulation, arm: Arm) -> None:
    arm()
    await world.command("lc", "RestartJob")


async def repaired(world: Simulation, arm: Arm) -> None:
    arm()
    change = {"spec": {"selector": {JOB_NAME: "other"}}}
    await world.store.patch(SERVICE, "default", "lc", change)


async def outlived(world: Simulation, arm: Arm) -> None:
    await world.end_running()
    await world.settle()
    await world.advance(9.0)
    arm()


@pytest.mark.parametrize(
    ("kind", "happens"),
    [
        (POD, scaled_down),
        (POD, restarted),
        (POD_GROUP, restarted),
        (SERVICE, repaired),
        (JOB, outlived),
        (JOB, restarted),
    ],
)
def test_what_was_meant_for_the_one_before_does_not_reach_a_namesake(
    kind: Kind, happens: Callable[[Simulation, Arm], Awaitable[None]]
) -> None:
    clusters: list[Faulty] = []

    def wrapped(store: Any) -> Faulty:
        clusters.append(Faulty(store))
        return clusters[0]

    async def story(world: Simulation) -> None:
        [cluster] = clusters
        await world.run_job(job())
        await happens(world, lambda: cluster.arm(Fault.SUCCEEDED_BY_NAMESAKE, kind=kind))
        await world.advance(2.0)
        assert cluster.replaced[kind] == 1
        assert not cluster.hurt
        for place, successor in cluster.foreign:
            name = successor["metadata"]["name"]
            assert await world.store.get(place, "default", name) is successor

    simulated(story, wrap=wrapped)
