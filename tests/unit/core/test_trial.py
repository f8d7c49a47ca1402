"""Plugins that fail only when something is made: told before, and at last by the Job that waits."""

from typing import Any

import pytest
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.problems import Problem
from vcjob.api.types import Object
from vcjob.core.trial import try_out
from vcjob.plugins.base import AddToPod, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.foreign import guarded
from vcjob.plugins.registry import Registry, installed_plugins, registry_of

BLAME = 'the plugin "late" of the package bad 1.0'


def job(name: str, plugins: Object, **spec: Any) -> Object:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    tasks = [{"name": task, "replicas": 2, "template": template} for task in ("a", "b")]
    return apply_defaults(
        {"metadata": {"name": name}, "spec": {"tasks": tasks, "plugins": plugins, **spec}}
    )


def failing_at(task: str, index: int) -> Registry:
    """A plugin that cannot add to one pod."""

    def pods(_: Request) -> AddToPod:
        def add(pod: PodDraft) -> None:
            if (pod.task, pod.index) == (task, index):
                raise KeyError("oops")

        return add

    plugin = guarded(Plugin(name="late", help="Fails late.", pods=pods), BLAME)
    own = installed_plugins(third_party=False)
    return registry_of([plugin, *map(own.find, own.names())])


def test_the_first_pod_of_each_task_is_tried() -> None:
    [problem] = try_out(job("j", {"late": []}), failing_at("b", 0))
    assert problem == Problem(f"{BLAME} failed: KeyError: 'oops'", ("spec", "plugins"))
    assert not list(try_out(job("j", {"late": []}), failing_at("b", 1)))
    assert not list(try_out(job("j", {"svc": []}), failing_at("b", 0)))


def test_objects_that_cannot_be_made_are_told() -> None:
    def objects(_: Request) -> list[Object]:
        raise OSError("no network here")

    registry = registry_of([guarded(Plugin(name="late", help="-", objects=objects), BLAME)])
    [problem] = try_out(job("j", {"late": []}), registry)
    assert problem.message == f"{BLAME} failed: OSError: no network here"


@pytest.mark.parametrize("first", ["bad", "good"])
def test_a_plugin_that_fails_at_a_later_pod_stops_its_own_job_only(first: str) -> None:
    async def story(world: Simulation) -> None:
        jobs = {"bad": job("bad", {"late": []}), "good": job("good", {"svc": []})}
        for name in (first, *(jobs.keys() - {first})):
            await world.create_job(jobs[name])
        await world.settle()
        await world.run_all()
        assert await world.phase("good") == "Running"
        assert await world.phase("bad") == "Pending"
        state = (await world.status("bad"))["state"]
        assert (state["reason"], state["message"]) == (
            "PluginError",
            f"{BLAME} failed: KeyError: 'oops'; 3 of 4 pods have started; not yet 1 of task a",
        )
        assert any(BLAME in message for message in await world.messages())

    simulated(story, registry=failing_at("a", 1))
