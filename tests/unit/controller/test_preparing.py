"""What no API server checks: a Job whose objects nobody would take waits, and says why."""

from typing import Any

import pytest
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import NETWORK_POLICY
from vcjob.api.types import Object
from vcjob.local.apiserver.admission import problems_here
from vcjob.plugins.base import Plugin, Request
from vcjob.plugins.registry import registry_of


def job(name: str, *plugins: str, **pod: Any) -> Object:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}], **pod}
    task = {"name": "worker", "replicas": 2, "template": {"spec": spec}}
    whole = {"tasks": [task], "plugins": {plugin: [] for plugin in plugins}}
    return apply_defaults({"metadata": {"name": name}, "spec": whole})


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        ({"containers": []}, "spec.containers: containers must have at least 1 item"),
        ({"containers": [{"image": "b"}]}, 'containers[0] lacks the field "name"'),
        ({"securityContext": "root"}, "spec.securityContext: securityContext must be an object"),
        (
            {"containers": [{"name": "c", "image": "b",
                             "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            'the pod has no volume "v"',
        ),
    ],
)  # fmt: skip
def test_a_job_whose_pods_would_be_refused_waits_until_they_are_put_right(
    pod: Object, says: str
) -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job("lc", **pod))
        await world.run_job(job("other"))
        await world.advance(100)
        state = (await world.status("lc"))["state"]
        assert (state["phase"], state["reason"]) == ("Pending", "Malformed")
        assert 'pods of task "worker" cannot be made: ' in state["message"]
        assert says in state["message"]
        assert [one for one in await world.messages() if says in one]
        assert await world.pod_names() == ["other-worker-0", "other-worker-1"]
        await world.patch_job("lc", {"spec": {"tasks": job("lc")["spec"]["tasks"]}})
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story, controller_options={"check": problems_here})


def test_so_does_one_whose_plugin_makes_an_object_of_an_impossible_shape() -> None:
    def objects(request: Request) -> list[Object]:
        selector = {"podSelector": {"matchLabels": 7}}
        metadata = {"name": f"{request.job.metadata.name}-odd"}
        kind = {"apiVersion": NETWORK_POLICY.api_version, "kind": NETWORK_POLICY.kind}
        return [{**kind, "metadata": metadata, "spec": selector}]

    odd = Plugin(name="odd", help="-", kinds=(NETWORK_POLICY,), objects=objects)

    async def story(world: Simulation) -> None:
        await world.create_job(job("lc", "odd"))
        await world.run_job(job("other"))
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "Malformed"
        assert "NetworkPolicy lc-odd cannot be made: spec.podSelector.match" in state["message"]
        assert not await world.exists(NETWORK_POLICY, "lc-odd")

    registry = registry_of([odd])
    simulated(story, registry=registry, controller_options={"check": problems_here})
