"""What is found out about the cluster that is tested, by somebody who is there and who is not."""

import asyncio
import contextlib

import pytest
from end_to_end.facts import Facts, ask, of_engine
from end_to_end.playing import running
from end_to_end.target import Target

from vcjob.api.kinds import POD, POD_GROUP
from vcjob.cli.following import changes
from vcjob.controller.cluster import NotFound
from vcjob.kubernetes.cluster import KubernetesCluster

TURN = 0.4


async def play(cluster: KubernetesCluster) -> None:
    """Be one of those who play every node."""
    async for _, pod in changes(cluster, POD):
        if not pod["status"].get("startTime"):
            place = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            status = {"status": running(pod)}
            await cluster.patch(POD, *place, status, subresource="status")


async def schedule(cluster: KubernetesCluster) -> None:
    """Be a scheduler of gangs."""
    async for _, group in changes(cluster, POD_GROUP):
        if not group.get("status"):
            place = (group["metadata"]["namespace"], group["metadata"]["name"])
            await cluster.patch(POD_GROUP, *place, {"status": {"phase": "Pending"}})


def test_nobody_is_found_and_who_is_there_is(target: Target, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("kubeconfig"):
        pytest.skip("who knows what others have?")

    async def found() -> tuple[Facts, Facts, Facts]:
        async with target.cluster() as cluster:
            alone = await ask(cluster, TURN)
            others = [asyncio.create_task(one(cluster)) for one in (play, schedule)]
            try:
                return await of_engine(cluster), alone, await ask(cluster, 20.0)
            finally:
                for other in others:
                    other.cancel()
                    with contextlib.suppress(asyncio.CancelledError, NotFound):
                        await other

    known, alone, with_others = asyncio.run(found())
    assert alone == known
    assert (with_others.scheduler, with_others.others_play) == (True, True)
