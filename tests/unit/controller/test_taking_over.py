"""Jobs that Volcano's controller left in the middle of something, and what it finds of ours."""

from collections import Counter
from typing import Any

import pytest
from faults import Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, POD, SECRET, SUPPORTING, Kind
from vcjob.api.names import (
    JOB_VERSION,
    MANAGED_BY,
    MANAGED_BY_VALUE,
    OUT_OF_SYNC,
    STATE_KEY,
    ssh_secret_name,
)
from vcjob.api.types import Object
from vcjob.local.store import Store

EVICTED = [{"event": "PodEvicted", "action": "AbortJob"}]


def job(replicas: int = 3, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    return apply_defaults({"metadata": {"name": "lc"}, "spec": {"tasks": [task], **spec}})


async def forget(world: Simulation, **status: Any) -> None:
    """End our controller; the status is as if Volcano's had written it: without our notes."""
    await world.crash()
    await write_status(world, controlledResources={STATE_KEY: None}, **status)


async def write_status(world: Simulation, phase: str = "", **status: Any) -> None:
    patch: Object = {"status": {**status, **({"state": {"phase": phase}} if phase else {})}}
    await world.store.patch(JOB, "default", "lc", patch, subresource="status")


async def mark(world: Simulation, *names: str) -> None:
    for name in names:
        patch = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
        await world.store.patch(POD, "default", name, patch)


async def go_on(world: Simulation) -> None:
    await world.start()
    await world.settle()


async def uids(world: Simulation) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await world.pods()}


@pytest.mark.parametrize("asked", [False, True], ids=["marked", "deletion asked for"])
@pytest.mark.parametrize("recorded", [False, True], ids=["not recorded", "recorded"])
def test_a_kill_of_some_pods_that_was_half_done_is_finished_once(
    asked: bool, recorded: bool
) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=EVICTED))
        before = await uids(world)
        phase = {"phase": "Restarting", "retryCount": 1} if recorded else {}
        await forget(world, **phase)
        await mark(world, "lc-worker-1")
        if asked:
            await world.delete_pod("lc-worker-1")
        await go_on(world)
        await world.run_pending()
        await world.settle()
        after = await uids(world)
        assert {name for name in before if before[name] != after[name]} == {"lc-worker-1"}
        status = await world.status("lc")
        assert (status["state"]["phase"], status.get("retryCount", 0)) == ("Running", int(recorded))
        assert not [one for one in await world.messages() if "PodEvicted" in one]

    simulated(story)


@pytest.mark.parametrize("code", [0, 7])
def test_a_marked_pod_that_has_ended_counts_for_nothing(code: int) -> None:
    async def story(world: Simulation) -> None:
        policies = [{"events": ["PodFailed", "TaskCompleted"], "action": "AbortJob"}]
        await world.run_job(job(1, policies=policies))
        await forget(world)
        await mark(world, "lc-worker-0")
        await world.end_pod("lc-worker-0", code)
        await go_on(world)
        await world.run_pending()
        await world.settle()
        assert await world.phase("lc") == "Running"
        assert (await world.status("lc"))["running"] == 1

    simulated(story)


@pytest.mark.parametrize(
    ("phase", "end"),
    [("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")],
)
@pytest.mark.parametrize("version", [0, 4])
def test_a_job_that_is_being_stopped_is_stopped(phase: str, end: str, version: int) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.end_pod("lc-worker-0")
        await world.settle()
        await forget(world, phase=phase, version=version)
        await mark(world, "lc-worker-1")
        await go_on(world)
        status = await world.status("lc")
        assert status["state"]["phase"] == end
        assert await world.pod_names() == ["lc-worker-0"]
        assert status["succeeded"] == 1

    simulated(story)


@pytest.mark.parametrize("phase", ["Aborted", "Completed", "Failed", "Terminated"])
def test_the_pods_of_a_job_that_has_ended_stay(phase: str) -> None:
    """Volcano's kills raise the version also where they keep pods."""

    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.crash()
        for index, code in enumerate((0, 3, 0)):
            await world.end_pod(f"lc-worker-{index}", code)
        await forget_when_stopped(world, phase)
        before = await uids(world)
        await go_on(world)
        await world.advance(60)
        assert await uids(world) == before
        status = await world.status("lc")
        assert (status["state"]["phase"], status["succeeded"], status["failed"]) == (phase, 2, 1)

    async def forget_when_stopped(world: Simulation, phase: str) -> None:
        await write_status(world, phase, controlledResources={STATE_KEY: None}, version=5)

    simulated(story)


def test_notes_of_ours_that_volcano_has_outlived_are_not_believed() -> None:
    """We had the Job, gave it back, Volcano restarted it as a whole, and we take it again."""

    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=EVICTED))
        await world.crash()
        for name in await world.pod_names():
            await world.store.delete(POD, "default", name, grace_period_seconds=0)
        await write_status(world, "Pending", version=3, retryCount=1)
        await go_on(world)
        await world.run_pending()
        await world.settle()
        assert await world.phase("lc") == "Running"
        made = {pod["metadata"]["annotations"][JOB_VERSION] for pod in await world.pods()}
        assert made == {"3"}

    simulated(story)


def test_objects_that_volcano_made_are_the_jobs_own_and_get_our_label() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(plugins={"svc": [], "ssh": []}))
        await forget(world)
        before = await uids(world)
        objects = {}
        for kind in SUPPORTING:
            for obj in (await world.store.list(kind)).items:
                name = obj["metadata"]["name"]
                bare = {"metadata": {"labels": {MANAGED_BY: None}}}
                await world.store.patch(kind, "default", name, bare)
                objects[kind, name] = obj["metadata"]["uid"]
        secret = ssh_secret_name("lc")
        keys = (await world.store.get(SECRET, "default", secret))["data"]
        ours = {key: None for key in keys if "ed25519" in key}
        assert ours
        await world.store.patch(SECRET, "default", secret, {"data": ours})
        await go_on(world)
        assert await world.phase("lc") == "Running"
        for (kind, name), uid in objects.items():
            obj = await world.store.get(kind, "default", name)
            assert obj["metadata"]["uid"] == uid, "it is the same"
            assert obj["metadata"]["labels"][MANAGED_BY] == MANAGED_BY_VALUE
        after = (await world.store.get(SECRET, "default", secret))["data"]
        assert after["id_rsa"] == keys["id_rsa"], "pods that run have it"
        assert after.keys() == keys.keys()
        assert await uids(world) == before
        assert not [one for one in await world.messages() if "NameTaken" in one]

    simulated(story)


class Counting(Faulty):
    """Counts writes of pods."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.calls: Counter[str] = Counter()

    async def create(self, kind: Kind, obj: Object) -> Object:
        self.calls["create"] += kind == POD
        return await super().create(kind, obj)

    async def patch(self, kind: Kind, *names: Any, **options: Any) -> Object:
        self.calls["patch"] += kind == POD
        return await super().patch(kind, *names, **options)

    async def delete(self, kind: Kind, *names: Any, **options: Any) -> None:
        self.calls["delete"] += kind == POD
        await super().delete(kind, *names, **options)


@pytest.mark.parametrize(
    ("action", "patches", "deletions"),
    [("AbortJob", 0, 3), ("RestartJob", 0, 3), ("RestartPod", 1, 1), ("RestartTask", 3, 3)],
)
def test_how_many_calls_a_pod_costs(action: str, patches: int, deletions: int) -> None:
    """Of a whole-job kill the version tells which pods are meant; else each is marked."""

    async def story(world: Simulation) -> None:
        policy = {"event": "PodFailed", "action": action}
        await world.run_job(job(policies=[policy]))
        cluster = world.cluster
        assert isinstance(cluster, Counting)
        assert +cluster.calls == {"create": 3}
        await world.end_pod("lc-worker-1", 1)
        await world.settle()
        kept = 1 if action == "AbortJob" else 0
        assert cluster.calls["patch"] == patches
        assert cluster.calls["delete"] == deletions - kept

    simulated(story, wrap=Counting)


def test_pods_too_many_after_a_scale_down_are_marked() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(minAvailable=1))
        tasks = [{**(await world.job("lc"))["spec"]["tasks"][0], "replicas": 2}]
        await world.patch_job("lc", {"spec": {"tasks": tasks}})
        await world.settle(finish_pods=False)
        (leaving,) = [pod for pod in await world.pods() if "deletionTimestamp" in pod["metadata"]]
        assert leaving["metadata"]["annotations"][OUT_OF_SYNC] == "true"

    simulated(story)


def test_what_we_leave_is_what_volcano_reads() -> None:
    async def story(world: Simulation) -> None:
        policy = {"event": "PodFailed", "action": "RestartJob"}
        await world.run_job(job(policies=[policy], plugins={"svc": [], "ssh": [], "env": []}))
        await world.end_pod("lc-worker-1", 1)
        await world.settle()
        await world.admit()
        await world.settle()
        status = await world.status("lc")
        assert (status["version"], status["retryCount"]) == (1, 1)
        marks = {key for key in status["controlledResources"] if key != STATE_KEY}
        assert marks == {"plugin-svc", "plugin-ssh", "plugin-env"}
        assert [one["status"] for one in status["conditions"]] == [
            "Running", "Restarting", "Pending"
        ]  # fmt: skip
        uid = (await world.job("lc"))["metadata"]["uid"]
        for pod in await world.pods():
            annotations = pod["metadata"]["annotations"]
            assert annotations["scheduling.k8s.io/group-name"] == f"lc-{uid}"
            assert annotations[JOB_VERSION] == "1"

    simulated(story)


def test_a_status_that_another_controller_has_just_written_is_not_written_over() -> None:
    clusters: list[Faulty] = []
    phases: list[str] = []

    def wrapped(store: Store) -> Faulty:
        clusters.append(Faulty(store))
        return clusters[0]

    async def story(world: Simulation) -> None:
        async def abort(kind: Kind, name: str, patch: Object) -> None:
            phase = patch.get("status", {}).get("state", {}).get("phase")
            if kind != JOB or not phase:
                return
            phases.append(phase)
            if phase == "Running":
                await write_status(
                    world, "Aborting", version=1, controlledResources={STATE_KEY: None}
                )

        await world.create_job(job())
        await world.settle()
        clusters[0].before_patch.append(abort)
        await world.run_all()
        assert phases == ["Running", "Aborted"]
        assert await world.phase("lc") == "Aborted"

    simulated(story, wrap=wrapped)
