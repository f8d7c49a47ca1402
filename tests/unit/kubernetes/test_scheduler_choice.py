"""Who admits gangs, found out by the Lease of Volcano's scheduler."""

import asyncio
import contextlib
import functools
from typing import Any, cast

import pytest
import volcanos_leases
from volcanos_leases import Closed

from vcjob.api.kinds import JOB, LEASE, POD
from vcjob.api.names import JOB_NAME, OUT_OF_SYNC
from vcjob.api.types import Object
from vcjob.controller.cluster import ObjectList, Unavailable
from vcjob.controller.readiness import Readiness
from vcjob.core.scheduling.gating import GATE, GangScheduling
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.scheduler_choice import (
    SCHEDULER_LEASE,
    SchedulerChoice,
    remake_all_waiting,
    remake_waiting,
)
from vcjob.local.store import Store

VOLCANO, BUILTIN = GangScheduling.VOLCANO, GangScheduling.BUILTIN
QUICK = {"look": 0.005, "look_again": 0.005}


class Looked(Store):
    """A store that counts how often a Lease was looked at."""

    looks = 0

    async def get(self, kind: Any, namespace: str, name: str) -> Object:
        self.looks += kind == LEASE
        return await super().get(kind, namespace, name)


def new_store() -> Looked:
    return Looked(lambda: 1_800_000_000.0)


hold = functools.partial(volcanos_leases.hold, lease=SCHEDULER_LEASE)
renewing = functools.partial(
    volcanos_leases.renewing, lease=SCHEDULER_LEASE, holder="volcano-scheduler-x"
)


@pytest.mark.parametrize("wanted", [VOLCANO, BUILTIN])
def test_what_is_told_is_not_looked_for(wanted: GangScheduling) -> None:
    async def scenario() -> None:
        store, readiness = new_store(), Readiness()
        choice = SchedulerChoice(store, wanted.value, readiness, **QUICK)
        assert await choice.choose() is wanted
        assert readiness.text().endswith("as --scheduler says\n")

    asyncio.run(scenario())


def test_a_lease_that_is_renewed_is_volcano_s_scheduler_at_work() -> None:
    async def scenario() -> None:
        store, readiness = new_store(), Readiness()
        async with renewing(store):
            assert await SchedulerChoice(store, "auto", readiness, **QUICK).choose() is VOLCANO
        assert "volcano-scheduler-x renews the Lease" in readiness.text()

    asyncio.run(scenario())


def test_volcano_s_scheduler_is_looked_for_in_the_namespace_that_it_is_said_to_be_in() -> None:
    async def scenario() -> None:
        store, readiness = new_store(), Readiness()
        choice = SchedulerChoice(store, "auto", readiness, namespace="batch", **QUICK)
        async with renewing(store, namespace="batch"):
            assert await choice.choose() is VOLCANO
        assert "x renews the Lease batch/volcano" in readiness.text()

    asyncio.run(scenario())


def test_while_it_looks_whether_the_lease_is_renewed_it_is_not_ready_and_says_so() -> None:
    async def scenario() -> None:
        store, readiness = new_store(), Readiness()
        await hold(store, "killed", seconds=1)
        choosing = asyncio.create_task(SchedulerChoice(store, "auto", readiness, **QUICK).choose())
        looks = store.looks + 2
        while store.looks < looks:  # noqa: ASYNC110 - what is waited for is not ours to signal
            await asyncio.sleep(0.001)
        said = readiness.of(Condition.SCHEDULER)
        lease = "killed is named as holder of the Lease volcano-system/volcano"
        assert said == f"{lease}; looking for 1 s whether it still renews it"
        assert await choosing is BUILTIN
        assert readiness.ready

    asyncio.run(scenario())


@pytest.mark.parametrize("left", [None, "", "killed"])
def test_without_a_holder_that_renews_gangs_are_ours(left: str | None) -> None:
    async def scenario() -> None:
        store = new_store()
        if left is not None:
            await hold(store, left, seconds=1)
        assert await SchedulerChoice(store, "auto", Readiness(), **QUICK).choose() is BUILTIN

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("wanted", "works", "said"),
    [
        (VOLCANO, False, "no Job starts before Volcano's scheduler works"),
        (VOLCANO, True, ""),
        (BUILTIN, False, ""),
        (BUILTIN, True, "volcano-scheduler-x renews the Lease volcano-system/volcano: two decide"),
    ],
)
def test_a_choice_that_does_not_fit_what_is_there_is_kept_and_told(
    wanted: GangScheduling, works: bool, said: str
) -> None:
    async def scenario() -> None:
        store, readiness = new_store(), Readiness()
        choice = SchedulerChoice(store, wanted.value, readiness, **QUICK)
        async with contextlib.AsyncExitStack() as stack:
            if works:
                await stack.enter_async_context(renewing(store))
            await choice.choose()
            looking = asyncio.create_task(choice.changed())
            looks = store.looks + 10
            async with asyncio.timeout(10):
                while store.looks < looks:  # noqa: ASYNC110 - what is waited for is not ours to signal
                    await asyncio.sleep(0.001)
            assert not looking.done()
            assert readiness.ready
            assert (said in readiness.text()) if said else ("but" not in readiness.text())
            assert choice.chosen is wanted
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    asyncio.run(scenario())


def test_without_the_right_to_look_a_choice_is_taken_as_it_is() -> None:
    async def scenario() -> None:
        readiness = Readiness()
        choice = SchedulerChoice(Closed(lambda: 0.0), "volcano", readiness, **QUICK)
        await choice.choose()
        looking = asyncio.create_task(choice.changed())
        await asyncio.wait({looking}, timeout=0.05)
        assert not looking.done()
        assert readiness.ready
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    asyncio.run(scenario())


def test_volcano_s_scheduler_that_comes_later_gets_the_gangs_at_once() -> None:
    async def scenario() -> None:
        store = new_store()
        choice = SchedulerChoice(store, "auto", Readiness(), **QUICK)
        await choice.choose()
        async with renewing(store):
            await choice.changed()
        assert await choice.choose() is VOLCANO

    asyncio.run(scenario())


def test_volcano_s_scheduler_that_goes_is_missed_only_after_a_while() -> None:
    async def scenario() -> None:
        store, readiness = new_store(), Readiness()
        for away, changes in ((600.0, False), (0.05, True)):
            choice = SchedulerChoice(store, "auto", readiness, away=away, **QUICK)
            async with renewing(store):
                assert await choice.choose() is VOLCANO
            await hold(store, "", 1)
            changed = asyncio.create_task(choice.changed())
            await asyncio.wait({changed}, timeout=0.2 if not changes else 20)
            assert changed.done() is changes
            assert (choice.chosen is BUILTIN) is changes
            said = "nobody renewed" if changes else "any more; after 600 s the operator does"
            assert said in readiness.text()
            changed.cancel()
            await asyncio.gather(changed, return_exceptions=True)

    asyncio.run(scenario())


def test_without_the_right_to_look_it_waits_and_says_which() -> None:
    async def scenario() -> None:
        store, readiness = Closed(lambda: 0.0), Readiness()
        choosing = asyncio.create_task(SchedulerChoice(store, "auto", readiness, **QUICK).choose())
        await asyncio.wait({choosing}, timeout=0.02)
        assert "grant the verb get on leases" in readiness.of(Condition.SCHEDULER)
        store.closed = False
        assert await choosing is BUILTIN
        assert not readiness.of(Condition.SCHEDULER)

    asyncio.run(scenario())


def pod(name: str, uid: str, **spec: Any) -> Object:
    owners = [{"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": uid,
               "controller": True}] if uid else []  # fmt: skip
    metadata = {"name": name, "namespace": "default", "labels": {JOB_NAME: "j"},
                "ownerReferences": owners}  # fmt: skip
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


class Selecting:
    """A store with the selector of ``KubernetesCluster.list``, and a note of what was marked."""

    def __init__(self) -> None:
        self.store = new_store()
        self.marked: set[str] = set()
        self.failures = 0
        self.listed = asyncio.Event()

    async def list(self, kind: Any, namespace: str | None, *, selector: str) -> ObjectList:
        assert selector == JOB_NAME
        if self.failures:
            self.failures -= 1
            raise Unavailable("nothing answers")
        self.listed.set()
        return await self.store.list(kind, namespace)

    async def patch(self, kind: Any, namespace: str, name: str, patch: Object, **more: Any) -> Any:
        if OUT_OF_SYNC in patch["metadata"]["annotations"]:
            self.marked.add(name)
        return await self.store.patch(kind, namespace, name, patch, **more)

    async def delete(self, kind: Any, namespace: str, name: str, **more: Any) -> None:
        await self.store.delete(kind, namespace, name, **more)


@pytest.mark.parametrize(
    ("chosen", "made_anew"), [(VOLCANO, {"gated"}), (BUILTIN, {"for-volcano"})]
)
def test_pods_that_wait_for_the_other_scheduler_are_made_anew(
    chosen: GangScheduling, made_anew: set[str]
) -> None:
    async def scenario() -> None:
        there = Selecting()
        gates = [{"name": GATE}]
        owner = await there.store.create(JOB, {"metadata": {"name": "j", "namespace": "default"}})
        uid = owner["metadata"]["uid"]
        for obj in (
            pod("gated", uid, schedulerName="default-scheduler", schedulingGates=gates),
            pod("for-volcano", uid, schedulerName="volcano"),
            pod("for-another", uid, schedulerName="mine"),
            pod("runs", uid, schedulerName="volcano", nodeName="node"),
            pod("of-nobody", "", schedulerName="volcano", schedulingGates=gates),
        ):
            await there.store.create(POD, obj)
        before = {one["metadata"]["name"] for one in (await there.store.list(POD)).items}
        cluster = cast(KubernetesCluster, there)
        assert await remake_waiting(cluster, chosen) == len(made_anew)
        left = {
            one["metadata"]["name"]
            for one in (await there.store.list(POD)).items
            if "deletionTimestamp" not in one["metadata"]
        }
        assert before - left == made_anew == there.marked
        assert await remake_waiting(cluster, chosen) == 0

    asyncio.run(scenario())


def test_pods_that_come_late_and_failures_do_not_leave_pods_waiting_for_the_other_scheduler() -> (
    None
):
    async def scenario() -> None:
        there = Selecting()
        owner = await there.store.create(JOB, {"metadata": {"name": "j", "namespace": "default"}})
        there.failures = 2
        cluster = cast(KubernetesCluster, there)
        remaking = asyncio.create_task(remake_all_waiting(cluster, VOLCANO, again=0.01))
        await there.listed.wait()
        late = pod("late", owner["metadata"]["uid"], schedulingGates=[{"name": GATE}])
        await there.store.create(POD, late)
        await remaking
        assert there.marked == {"late"}

    asyncio.run(scenario())
