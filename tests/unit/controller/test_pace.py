"""What a cluster's administrator decides about the controller, and how often it writes."""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, NETWORK_POLICY, SERVICE
from vcjob.api.names import NETWORK_POLICY_SOURCES, SERVICE_LABELS, SUSPEND
from vcjob.api.types import Job, Object
from vcjob.controller.observers import Observers
from vcjob.core.observed import Observed

INTERVAL = 0.5
REST = 4 * INTERVAL
"""After which whatever a story has told by then is written."""
Story = Callable[[Simulation], Awaitable[Any]]


def job(replicas: int = 2, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    metadata = {"name": "lc", "annotations": annotations or {}}
    return apply_defaults(
        {"metadata": metadata, "spec": {"tasks": [task], "plugins": {"svc": []}, **spec}}
    )


async def admitted(world: Simulation, obj: Object) -> None:
    await world.create_job(obj)
    await world.settle()
    await world.admit()
    await world.settle()


async def writes(world: Simulation, since: int) -> list[Object]:
    """Statuses of the Job since a version of the store."""
    following = world.store.watch(JOB, str(since))
    found = []
    while following.version < world.store.version:
        found.append((await anext(following)).object.get("status", {}))
    return found


def paced(story: Story, **options: Any) -> None:
    simulated(story, controller_options={"status_interval": INTERVAL, **options})


def test_a_status_that_only_counts_is_written_now_and_then_and_in_the_end_is_true() -> None:
    async def story(world: Simulation) -> None:
        await admitted(world, job(40))
        await world.advance(REST)
        began, version = world.clock.now(), world.store.version
        for index in range(30):
            await world.run_pod(f"lc-worker-{index}")
            await world.advance(0.1)
        seconds = world.clock.now() - began
        written = await writes(world, version)
        assert len(written) <= seconds / INTERVAL
        assert len(written) >= 3, "but it is written"
        await world.advance(REST)
        assert (await world.status("lc"))["running"] == 30

    paced(story)


def test_a_whole_life_keeps_to_the_budget_though_phases_are_written_at_once() -> None:
    async def story(world: Simulation) -> None:
        began, version = world.clock.now(), world.store.version
        await admitted(world, job(40))
        for change in (world.run_pod, world.end_pod):
            for index in range(40):
                await change(f"lc-worker-{index}")
                await world.advance(0.05)
        assert await world.phase("lc") == "Completed"
        seconds = world.clock.now() - began
        assert len(await writes(world, version)) - 1 <= seconds / INTERVAL, "but for its creation"

    paced(story)


def test_what_a_job_waits_for_is_written_together_with_its_counts() -> None:
    async def story(world: Simulation) -> None:
        version = world.store.version
        await admitted(world, job(3))
        assert len(await writes(world, version)) == 2, "its creation, and that it is Pending"
        assert len(await world.pods()) == 3
        await world.advance(REST)
        assert len(await writes(world, version)) == 3
        status = await world.status("lc")
        assert (status["state"]["reason"], status["pending"]) == ("PodsNotRunning", 3)
        assert "plugin-svc" in status["controlledResources"]

    paced(story)


def test_decisions_are_written_at_once_and_what_only_informs_after_them() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"event": "PodFailed", "action": "RestartPod"}]
        await admitted(world, job(9, minAvailable=1, maxRetry=100, policies=policies))
        await world.run_pending()
        await world.advance(10 * INTERVAL)
        version = world.store.version
        for index in range(4):
            await world.end_pod(f"lc-worker-{index}", 1)
            await world.settle()
            assert (await world.status("lc"))["retryCount"] == index + 1
            await world.run_pending()
            await world.settle()
        assert await world.phase("lc") == "Running"
        decided = len(await writes(world, version))
        await world.end_pod("lc-worker-8")
        await world.advance(INTERVAL)
        assert len(await writes(world, version)) == decided
        await world.advance(10 * INTERVAL)
        assert len(await writes(world, version)) == decided + 1
        assert (await world.status("lc"))["succeeded"] == 1

    paced(story)


def test_what_is_decided_is_written_at_once() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"event": "PodFailed", "action": "AbortJob"}]
        await admitted(world, job(3, policies=policies))
        await world.advance(REST)
        await world.run_pending()
        await world.settle()
        assert await world.phase("lc") == "Running"
        await world.end_pod("lc-worker-1")
        await world.settle()
        await world.end_pod("lc-worker-0", 1)
        await world.settle(finish_pods=False)
        status = await world.status("lc")
        assert status["state"]["phase"] == "Aborting"
        assert (status["succeeded"], status["failed"]) == (1, 1), "with the counts of that moment"

    paced(story)


def test_a_pod_that_succeeds_and_goes_in_between_is_not_made_again() -> None:
    async def story(world: Simulation) -> None:
        await admitted(world, job(3))
        await world.run_pending()
        await world.settle()
        await world.advance(2 * REST)
        await world.end_pod("lc-worker-0")
        await world.settle()
        await world.end_pod("lc-worker-1")
        await world.settle()
        assert (await world.status("lc"))["succeeded"] == 1, "the second waits"
        await world.delete_pod("lc-worker-1")
        await world.settle()
        await world.settle()
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-2"]
        await world.advance(REST)
        assert (await world.status("lc"))["succeeded"] == 2
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-2"]

    paced(story)


def test_a_pod_that_somebody_deletes_in_between_is_evicted_once() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"event": "PodEvicted", "action": "RestartJob"}]
        await admitted(world, job(3, policies=policies))
        await world.run_pending()
        await world.settle()  # that they live is not recorded yet
        await world.delete_pod("lc-worker-1")
        await world.settle()
        await world.advance(5)
        assert (await world.status("lc"))["retryCount"] == 1

    paced(story)


def test_scaling_down_and_up_again_at_once_is_no_eviction() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"event": "PodEvicted", "action": "RestartJob"}]
        await admitted(world, job(3, minAvailable=1, policies=policies))
        await world.run_pending()
        await world.advance(REST)
        for replicas in (1, 3):
            tasks = [{**(await world.job("lc"))["spec"]["tasks"][0], "replicas": replicas}]
            await world.patch_job("lc", {"spec": {"tasks": tasks}})
            await world.settle()
        await world.advance(5)
        assert (await world.status("lc")).get("retryCount", 0) == 0
        assert len(await world.pods()) == 3

    paced(story)


def test_pods_are_created_as_the_cluster_wants_them() -> None:
    def gated(pod: Object) -> Object:
        return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": "g"}]}}

    async def story(world: Simulation) -> None:
        await admitted(world, job(3))
        gates = [pod["spec"]["schedulingGates"] for pod in await world.pods()]
        assert gates == [[{"name": "g"}]] * 3

    simulated(story, controller_options={"adapt_pod": gated})


@pytest.mark.parametrize(
    ("allowed", "works", "warns"),
    [(None, True, 0), ((), False, 1), ((SERVICE_LABELS,), True, 0)],
    ids=["all", "none", "this one"],
)
def test_annotations_that_widen_rights_work_where_they_are_allowed(
    allowed: tuple[str, ...] | None, works: bool, warns: int
) -> None:
    async def story(world: Simulation) -> None:
        annotated = {SERVICE_LABELS: '{"mesh": "on"}', "other.example/a": "b"}
        await admitted(world, job(2, annotated))
        service = await world.store.get(SERVICE, "default", "lc")
        assert ("mesh" in service["metadata"]["labels"]) is works
        for number in range(3):
            await world.patch_job("lc", {"metadata": {"annotations": {"n": str(number)}}})
            await world.settle()
        found = [one for one in await world.events() if one["reason"] == "AnnotationIgnored"]
        assert len(found) == warns
        for warning in found:
            assert warning["count"] == 1
            assert f"--allow-annotation {SERVICE_LABELS}" in warning["message"]

    simulated(story, controller_options={"allowed_annotations": allowed})


def test_an_annotation_that_means_nothing_is_told_once_and_the_job_stays_as_it_is() -> None:
    async def story(world: Simulation) -> None:
        await admitted(world, job(2, {SUSPEND: "true"}))
        assert await world.phase("lc") == "Aborted"
        for value in ("flase", "flase", "flaes"):
            await world.patch_job("lc", {"metadata": {"annotations": {SUSPEND: value, "n": "1"}}})
            await world.settle()
        assert await world.phase("lc") == "Aborted"
        assert [one for one in await world.messages() if "Ignored" in one] == [
            f'AnnotationIgnored: {SUSPEND} is "{value}", which means nothing; write "true" or '
            '"false"'
            for value in ("flase", "flaes")
        ]

    simulated(story)


def test_a_policy_opens_nothing_that_is_not_allowed() -> None:
    async def story(world: Simulation) -> None:
        await admitted(world, job(2, {NETWORK_POLICY_SOURCES: '[{"namespaceSelector": {}}]'}))
        policy = await world.store.get(NETWORK_POLICY, "default", "lc")
        peers = itertools.chain(*(rule["from"] for rule in policy["spec"]["ingress"]))
        assert not any("namespaceSelector" in peer for peer in peers)
        annotations = (await world.job("lc"))["metadata"]["annotations"]
        assert NETWORK_POLICY_SOURCES in annotations, "it is ignored, not taken away"

    simulated(story, controller_options={"allowed_annotations": ()})


def test_whoever_measures_hears_of_each_pass_and_of_jobs_that_go() -> None:
    passes: list[float] = []
    seen: list[tuple[str, int]] = []
    forgotten: list[str] = []

    def look(one: Job, pods: Observed) -> None:
        seen.append((one.status.state.phase, len(pods.pods)))

    async def story(world: Simulation) -> None:
        await admitted(world, job(3))
        await world.run_pending()
        await world.settle()
        assert ("Running", 3) in seen
        assert len(passes) == len(seen)
        assert world.controller is not None
        assert [one.metadata.name for one in world.controller.jobs()] == ["lc"]
        uid = (await world.job("lc"))["metadata"]["uid"]
        await world.store.delete(JOB, "default", "lc")
        await world.settle()
        assert uid in forgotten
        assert list(world.controller.jobs()) == []

    observers = Observers(passes.append, look, forgotten.append)
    simulated(story, controller_options={"observers": observers})
