"""What is known of Jobs: who belongs to whom, and what wakes a Job that waits."""

import itertools
from typing import Any

import pytest
from faults import Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import COMMAND, JOB, PERSISTENT_VOLUME_CLAIM, POD, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, Invalid
from vcjob.controller.records import Records


def job(**spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": 2, "template": template}
    return apply_defaults({"metadata": {"name": "lc"}, "spec": {"tasks": [task], **spec}})


def command(uid: str, namespace: str = "default", action: str = "TerminateJob") -> Object:
    target = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": "lc", "uid": uid}
    metadata = {"generateName": "lc-", "namespace": namespace}
    return {"metadata": metadata, "action": action, "target": target}


def test_what_names_a_job_of_another_namespace_is_none_of_its_own() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        before = await world.status("lc")
        pod = await world.store.get(POD, "default", "lc-worker-0")
        kept = {k: pod["metadata"][k] for k in ("name", "labels", "annotations", "ownerReferences")}
        await world.store.create(
            POD, {"metadata": {**kept, "namespace": "other"}, "spec": pod["spec"]}
        )
        uid = (await world.job("lc"))["metadata"]["uid"]
        await world.store.create(COMMAND, command(uid, "other"))
        await world.settle()
        await world.store.delete(POD, "other", "lc-worker-0", grace_period_seconds=0)
        await world.settle()
        assert await world.status("lc") == before

    simulated(story)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_that_holds_in_whatever_order_the_news_come(order: tuple[int, ...]) -> None:
    known = Records(lambda uid: None)
    mine = {**job(), "metadata": {"name": "lc", "namespace": "default", "uid": "u"}}
    news = [(JOB, mine), (COMMAND, command("u")), (COMMAND, command("u", "other"))]
    for index in order:
        kind, obj = news[index]
        metadata = {"name": f"c{index}", "uid": f"c{index}", **obj["metadata"]}
        stored = {**obj, "metadata": {**metadata, "resourceVersion": str(index + 1)}}
        known.take(kind, EventType.ADDED, stored)
    assert list(known.by_uid["u"].commands) == ["c1"]


def test_a_job_that_runs_notices_that_its_claim_is_back() -> None:
    claim = {"metadata": {"name": "data", "namespace": "default"}}

    async def story(world: Simulation) -> None:
        await world.store.create(PERSISTENT_VOLUME_CLAIM, claim)
        await world.run_job(job(volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]))
        await world.store.delete(PERSISTENT_VOLUME_CLAIM, "default", "data")
        await world.delete_pod("lc-worker-0")
        await world.settle()
        assert (await world.status("lc"))["state"]["reason"] == "PVCError"
        assert await world.pod_names() == ["lc-worker-1"]
        await world.store.create(PERSISTENT_VOLUME_CLAIM, claim)
        await world.settle()
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]
        assert (await world.status("lc"))["state"].get("reason") != "PVCError"

    simulated(story)


def test_what_is_put_right_in_a_spec_is_tried_at_once() -> None:
    async def refuse(kind: Kind, obj: Object) -> None:
        if kind == POD and obj["spec"]["containers"][0]["image"] == "busybox":
            raise Invalid("image: must be another")

    async def story(world: Simulation) -> None:
        assert isinstance(world.cluster, Faulty)
        world.cluster.before_create.append(refuse)
        await world.create_job(job())
        await world.settle()
        await world.admit()
        await world.advance(600)
        assert (await world.status("lc"))["state"]["reason"] == "FailedCreate"
        [task] = job()["spec"]["tasks"]
        task["template"]["spec"]["containers"][0]["image"] = "another"
        await world.patch_job("lc", {"spec": {"tasks": [task]}})
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story, wrap=Faulty)


@pytest.mark.parametrize("again", [False, True], ids=["gone", "created again"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_commands_for_a_job_that_is_gone_are_removed_and_its_namesake_goes_on(
    again: bool, late: bool
) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        uid = (await world.job("lc"))["metadata"]["uid"]
        await world.crash()
        if not late:
            await world.store.create(COMMAND, command(uid))
        await world.store.delete(JOB, "default", "lc")
        if again:
            await world.create_job(job())
        await world.start()
        await world.settle()
        if late:
            await world.store.create(COMMAND, command(uid))
            await world.settle()
        await world.run_all()
        assert (await world.store.list(COMMAND)).items == []
        assert world.controller
        assert uid not in world.controller.records.by_uid
        assert not again or await world.phase("lc") == "Running"

    simulated(story)
