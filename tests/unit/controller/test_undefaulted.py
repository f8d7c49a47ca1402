"""A Job that no webhook has completed becomes the same objects as one that was completed."""

import copy
from typing import Any

import pytest
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import CONFIG_MAP, JOB, POD, POD_GROUP
from vcjob.api.types import Object
from vcjob.plugins.registry import installed_plugins

REQUIRES = installed_plugins(third_party=False).requires
POD_SPEC = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}


def task(name: str = "", **more: Any) -> Object:
    named = {"name": name} if name else {}
    return {**named, "replicas": 2, "template": {"spec": copy.deepcopy(POD_SPEC)}, **more}


SPECS = {
    "named": {"tasks": [task("a"), task("b", minAvailable=1)], "plugins": {"env": [], "svc": []}},
    "host network": {
        "tasks": [task("a", template={"spec": {**POD_SPEC, "hostNetwork": True}})],
    },
    "unnamed": {"tasks": [task(), task("b"), task()], "plugins": {"env": [], "svc": []}},
    "needs others": {"tasks": [task("worker")], "plugins": {"pytorch": ["--master=worker"]}},
    "partitions": {
        "tasks": [
            task("a", partitionPolicy={
                "totalPartitions": 2, "partitionSize": 1, "minPartitions": 1
            })
        ],
    },
}  # fmt: skip


def becomes(job: Object) -> dict[str, Any]:
    """What there is once all pods run, apart from the stored spec, and what it ends as."""

    async def story(simulation: Simulation) -> dict[str, Any]:
        await simulation.store.create(JOB, copy.deepcopy(job))
        await simulation.settle()
        found: dict[str, Any] = {}
        for group in (await simulation.store.list(POD_GROUP)).items:
            await simulation.store.patch(
                POD_GROUP, "default", group["metadata"]["name"], {"status": {"phase": "Inqueue"}},
                subresource="status",
            )  # fmt: skip
            found["group"] = group["spec"]
        await simulation.settle()
        pods = (await simulation.store.list(POD)).items
        found["pods"] = {pod["metadata"]["name"]: pod["spec"] for pod in pods}
        maps = (await simulation.store.list(CONFIG_MAP)).items
        found["maps"] = {one["metadata"]["name"]: one["data"] for one in maps}
        return found

    return simulated(story)


@pytest.mark.parametrize("name", SPECS)
def test_a_job_that_was_never_completed_runs_as_one_that_was(name: str) -> None:
    bare = {"metadata": {"name": "j", "namespace": "default"}, "spec": SPECS[name]}
    found = becomes(bare)
    assert found["pods"]
    assert found == becomes(apply_defaults(bare, requires=REQUIRES))
