"""The operator is killed in the middle of its work, and another begins."""

from collections.abc import Iterator

import pytest
from end_to_end.operating import Operating
from end_to_end.recording import phases
from end_to_end.target import Target
from end_to_end.world import World

from vcjob.api.kinds import POD
from vcjob.api.names import JOB_VERSION
from vcjob.api.types import Object

PODS = 40


@pytest.fixture
def operating(operator: Operating | None) -> Iterator[Operating]:
    """The operator, if it is the tests' own."""
    if operator is None:
        pytest.skip("the controller is installed: who may kill it?")
    yield operator
    if operator.process.process.poll() is not None:
        operator.start_again()


def job(replicas: int) -> Object:
    """A Job that is made anew when a pod fails."""
    container = {"name": "main", "image": "busybox:1.36"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    return {"metadata": {"name": "lc"},
            "spec": {"tasks": [task], "plugins": {"svc": []}, "policies": policies}}  # fmt: skip


def versions(world: World) -> list[str]:
    return [pod["metadata"]["annotations"][JOB_VERSION] for pod in world.all(POD)]


def test_pods_are_made_once_though_it_dies_among_them(target: Target, operating: Operating) -> None:
    async def story(world: World) -> None:
        await world.create_job(job(PODS))
        await world.admit()
        await world.until(lambda: world.made)
        operating.kill()
        operating.start_again()
        await world.until(lambda: len(world.all(POD)) == PODS)
        for name in list(world.made):
            await world.run_pod(name)
        await world.phase("lc", "Running")
        assert len(world.made) == PODS

    target.play(story)


def test_what_happens_while_nobody_works_is_acted_upon_later(
    target: Target, operating: Operating
) -> None:
    async def story(world: World) -> None:
        await world.create_job(job(3))
        await world.admit()
        await world.until(lambda: len(world.made) == 3)
        for name in list(world.made):
            await world.run_pod(name)
        await world.phase("lc", "Running")
        operating.kill()
        await world.end_pod("lc-worker-1", 1)
        operating.start_again()
        await world.admit_again()
        await world.until(lambda: versions(world) == ["1", "1", "1"])
        assert len(world.made) == 6
        await world.until(lambda: phases(world)[-1] == "Pending")
        assert phases(world) == ["Pending", "Running", "Restarting", "Pending"]

    target.play(story)


def test_a_kill_is_finished_by_who_comes_after(target: Target, operating: Operating) -> None:
    async def story(world: World) -> None:
        await world.create_job(job(PODS))
        await world.admit()
        await world.until(lambda: len(world.made) == PODS)
        for name in list(world.made):
            await world.run_pod(name)
        await world.phase("lc", "Running")
        await world.command("lc", "AbortJob")
        await world.until(lambda: len(world.all(POD)) < PODS or world.leaving())
        operating.kill()
        operating.start_again()
        await world.until(lambda: not world.all(POD))
        await world.phase("lc", "Aborted")
        assert len(world.made) == PODS

    target.play(story)
