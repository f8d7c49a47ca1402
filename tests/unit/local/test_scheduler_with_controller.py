"""Controller and scheduler together on one store; only the node is played."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, POD
from vcjob.api.types import Object
from vcjob.local.scheduler import Scheduler

CAPACITY = {"cpu": "4", "memory": "8Gi"}


def task(name: str, replicas: int, cpu: str = "", **fields: Any) -> Object:
    container: Object = {"name": "main", "image": "none"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def job(name: str, *tasks: Object, **spec: Any) -> Object:
    return apply_defaults(
        {
            "apiVersion": JOB.api_version,
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"plugins": {"svc": [], "env": []}, "tasks": list(tasks), **spec},
        }
    )


async def run_bound(world: Simulation) -> None:
    """Play the node: whatever is bound runs."""
    for pod in await world.pods():
        if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
            await world.run_pod(pod["metadata"]["name"])
    await world.settle()


async def bound(world: Simulation) -> set[str]:
    return {
        pod["metadata"]["name"]
        for pod in (await world.store.list(POD)).items
        if pod["spec"].get("nodeName")
    }


def together(story: Callable[[Simulation], Awaitable[None]]) -> None:
    async def with_scheduler(world: Simulation) -> None:
        scheduler = Scheduler(world.store, CAPACITY, node="here", clock=world.clock.now)
        running = asyncio.create_task(scheduler.run())
        await world.settle()
        try:
            await story(world)
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    simulated(with_scheduler)


def test_the_guides_job_runs_and_completes() -> None:
    async def story(world: Simulation) -> None:
        done = [{"event": "TaskCompleted", "action": "CompleteJob"}]
        await world.create_job(job("tf", task("ps", 1), task("worker", 2, policies=done)))
        await world.settle()
        await run_bound(world)
        assert await world.phase("tf") == "Running"
        for index in (0, 1):
            await world.end_pod(f"tf-worker-{index}")
        await world.settle()
        assert await world.phase("tf") == "Completed"
        assert await world.pod_names() == ["tf-worker-0", "tf-worker-1"]

    together(story)


def test_a_restart_of_the_whole_job_queues_again_and_runs() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"event": "PodEvicted", "action": "RestartJob"}]
        await world.create_job(job("lc", task("worker", 2, "2"), policies=policies))
        await world.settle()
        await run_bound(world)
        await world.delete_pod("lc-worker-0")
        await world.settle()
        await run_bound(world)
        status = await world.status("lc")
        assert status["state"]["phase"] == "Running"
        assert status["retryCount"] == 1

    together(story)


def test_a_job_that_does_not_fit_waits_for_the_other_and_says_so() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job("first", task("worker", 2, "2")))
        await world.settle()
        await world.create_job(job("second", task("worker", 1, "3")))
        await world.settle()
        await run_bound(world)
        assert await bound(world) == {"first-worker-0", "first-worker-1"}
        assert "cpu 3" in (await world.status("second"))["state"]["message"]
        for index in (0, 1):
            await world.end_pod(f"first-worker-{index}")
        await world.settle()
        await run_bound(world)
        assert await world.phase("second") == "Running"

    together(story)


def test_a_job_that_never_fits_is_told_with_the_numbers_and_holds_up_nobody() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job("huge", task("worker", 64, "1")))
        await world.create_job(job("lc", task("worker", 1, "1")))
        await world.settle()
        await run_bound(world)
        assert await world.phase("lc") == "Running"
        message = (await world.status("huge"))["state"]["message"]
        assert "cpu 64" in message
        assert "this machine has cpu 4" in message
        assert any("cpu 64" in text for text in await world.messages())

    together(story)


def test_a_task_that_waits_for_another_gets_its_room_when_its_turn_comes() -> None:
    async def story(world: Simulation) -> None:
        after = {"dependsOn": {"name": ["first"]}}
        await world.create_job(job("lc", task("first", 1, "3"), task("second", 2, "2", **after)))
        await world.settle()
        await run_bound(world)
        assert await bound(world) == {"lc-first-0"}
        assert len(await world.pods()) == 3
        await world.end_pod("lc-first-0")
        await world.settle()
        await run_bound(world)
        assert await bound(world) == {"lc-first-0", "lc-second-0", "lc-second-1"}

    together(story)


def test_one_pod_is_restarted_in_its_place() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"event": "PodFailed", "action": "RestartPod"}]
        await world.create_job(job("lc", task("worker", 4, "1"), policies=policies))
        await world.settle()
        await run_bound(world)
        await world.end_pod("lc-worker-2", exit_code=1)
        await world.settle()
        await run_bound(world)
        assert await world.phase("lc") == "Running"
        assert len(await bound(world)) == 4

    together(story)
