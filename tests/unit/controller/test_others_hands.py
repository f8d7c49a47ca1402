"""Others' hands on the objects of a Job: what the controller knows is true, and it goes on."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import pytest
from faults import Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import COMMAND, CONFIG_MAP, JOB, POD, PRIORITY_CLASS, SECRET, SERVICE, Kind
from vcjob.api.names import JOB_NAME, JOB_VERSION, TASK_INDEX, TASK_SPEC
from vcjob.api.types import Object
from vcjob.controller.cluster import ObjectList, WatchEvent
from vcjob.controller.repair_pace import AT_ONCE


class Selecting(Faulty):
    """One that shows the pods of a Job by its label only, as an operator sees them."""

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        return await super().list(kind, namespace, _of_the_job(kind, labels))

    def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        return super().watch(kind, since, namespace, _of_the_job(kind, labels))


def _of_the_job(kind: Kind, labels: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return {JOB_NAME: "lc"} if kind == POD else labels


def job(name: str = "lc", replicas: int = 2, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    return apply_defaults(
        {"metadata": {"name": name}, "spec": {"tasks": [task], "plugins": {"svc": []}, **spec}}
    )


@pytest.mark.parametrize("put_back", [False, True])
def test_a_pod_without_the_label_by_which_it_is_followed_gets_it_again(put_back: bool) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        before = {pod["metadata"]["uid"] for pod in await world.pods()}
        for label in (None, "lc") if put_back else (None,):
            patch = {"metadata": {"labels": {JOB_NAME: label}}}
            await world.store.patch(POD, "default", "lc-worker-0", patch)
            if not put_back:
                await world.settle()
        await world.settle()
        labels = (await world.store.get(POD, "default", "lc-worker-0"))["metadata"]["labels"]
        assert labels[JOB_NAME] == "lc"
        assert {pod["metadata"]["uid"] for pod in await world.pods()} == before
        await world.end_running()
        await world.settle()
        assert await world.phase("lc") == "Completed"

    simulated(story, wrap=Selecting)


@pytest.mark.parametrize(
    "annotations",
    [None, {JOB_VERSION: None}, {TASK_SPEC: "other"}, {TASK_INDEX: "1"}, {JOB_VERSION: "x"}],
    ids=str,
)
def test_a_pod_that_does_not_tell_what_it_is_for_is_named_and_made_anew_once_it_is_deleted(
    annotations: Object | None,
) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        patch = {"metadata": {"annotations": annotations}}
        await world.store.patch(POD, "default", "lc-worker-0", patch)
        await world.settle()
        status = await world.status("lc")
        assert status["running"] == 1
        assert status["state"]["reason"] == "PodUnknown"
        assert "Pod lc-worker-0 belongs to this Job, but" in status["state"]["message"]
        await world.store.delete(POD, "default", "lc-worker-0", grace_period_seconds=0)
        await world.settle()
        await world.run_all()
        status = await world.status("lc")
        assert (status["running"], status["state"].get("reason")) == (2, None)

    simulated(story, wrap=Selecting)


def test_an_object_whose_label_was_taken_away_is_put_right_with_its_label() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        before = await world.store.get(CONFIG_MAP, "default", "lc-svc")
        patch = {"metadata": {"labels": None}, "data": {"worker.host": "elsewhere"}}
        await world.store.patch(CONFIG_MAP, "default", "lc-svc", patch)
        await world.settle()
        after = await world.store.get(CONFIG_MAP, "default", "lc-svc")
        assert after["data"] == before["data"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    simulated(story)


def test_an_object_of_an_impossible_shape_stops_no_job() -> None:
    async def story(world: Simulation) -> None:
        metadata = {"name": "stop", "namespace": "default"}
        await world.store.create(COMMAND, {"metadata": metadata, "target": "lc"})
        await world.store.create(PRIORITY_CLASS, {"metadata": {"name": "x"}, "value": "high"})
        await world.run_job(job())
        await world.crash()
        await world.start()  # what it meets in a list, too
        await world.end_running()
        await world.settle()
        assert await world.phase("lc") == "Completed"

    simulated(story)


def test_who_puts_his_own_back_each_time_is_answered_once_a_second_and_named() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        wanted = (await world.store.get(SERVICE, "default", "lc"))["spec"]["selector"]

        async def repaired(times: int) -> int:
            count = 0
            for _ in range(times):
                change = {"spec": {"selector": {JOB_NAME: "other"}}}
                await world.store.patch(SERVICE, "default", "lc", change)
                await world.settle()
                selector = (await world.store.get(SERVICE, "default", "lc"))["spec"]["selector"]
                count += selector == wanted
            return count

        assert AT_ONCE - 5 < await repaired(2 * AT_ONCE) <= AT_ONCE
        told = [one["message"] for one in await world.events() if one["reason"] == "Contested"]
        assert len(told) == 1
        assert told[0].startswith("Service lc had to be made or put right again and again")
        await world.advance(1)
        assert (await world.store.get(SERVICE, "default", "lc"))["spec"]["selector"] == wanted
        assert await repaired(5) == 0
        await world.advance(2 * AT_ONCE)
        assert await repaired(5) == 5

    simulated(story)


def test_pods_wait_for_objects_that_are_put_right_only_once_a_second() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(replicas=1))
        for _ in range(AT_ONCE):
            await world.store.delete(SERVICE, "default", "lc")
            await world.settle()
        await world.patch_job("lc", {"spec": {"tasks": job(replicas=2)["spec"]["tasks"]}})
        await world.settle()
        assert await world.pod_names() == ["lc-worker-0"]
        await world.advance(2)
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]
        assert await world.exists(SERVICE, "lc")
        hosts = (await world.store.get(CONFIG_MAP, "default", "lc-svc"))["data"]
        assert "lc-worker-1" in str(hosts)

    simulated(story)


def test_nothing_is_kept_for_later_of_a_job_that_is_gone() -> None:
    async def story(world: Simulation) -> None:
        await world.store.create(SERVICE, {"metadata": {"name": "other", "namespace": "default"}})
        await world.create_job(job("other"))
        await world.settle()
        assert world.controller is not None
        assert world.controller.records.obstacles
        await world.store.delete(JOB, "default", "other")
        await world.run_job(job(ttlSecondsAfterFinished=1_000_000))
        await world.end_running()
        await world.settle()
        assert world.controller is not None
        assert world.controller.queue.next_due is not None
        await world.store.delete(JOB, "default", "lc")
        await world.settle()
        assert world.controller.queue.next_due is None
        assert world.controller.records.obstacles == {}

    simulated(story)


def test_a_job_that_is_deleted_in_the_middle_of_a_look_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is deleted just before each of the writes of its life."""

    async def story(world: Simulation, at: int) -> int:
        cluster = world.cluster
        assert isinstance(cluster, Faulty)
        left = [at]

        async def delete_job(*_: Any) -> None:
            left[0] -= 1
            if left[0] == -1:
                await world.store.delete(JOB, "default", "lc")
                for _ in range(5):  # until the controller knows
                    await asyncio.sleep(0)

        for hooks in (cluster.before_create, cluster.before_patch, cluster.before_delete):
            hooks.append(delete_job)
        plugins = {"svc": [], "ssh": ["--ssh-public-key=alone"]}  # of which it warns
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        await world.create_job(job(plugins=plugins, policies=policies))
        await world.settle()
        if await world.exists(JOB, "lc"):
            await world.admit()
            await world.settle()
            await world.run_pending()
            await world.settle()
        if await world.exists(POD, "lc-worker-0"):
            await world.end_pod("lc-worker-0", 1)
            await world.settle()
        await world.advance(100)
        if left[0] < 0:
            assert await world.pod_names() == []
            assert world.controller is not None
            assert world.controller.records.by_uid == {}
        return left[0]

    for at in itertools.count():
        options = {"unwatched": (SECRET,)}
        left = simulated(partial(story, at=at), wrap=Faulty, controller_options=options)
        if left >= 0:
            break
    assert at > 15
    assert not [one for one in caplog.records if one.levelname == "ERROR"], caplog.text
