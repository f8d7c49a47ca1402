"""What users of such systems ran into: ssh keys and MPI launchers. Each test names its case."""

from typing import Any

import pytest
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB
from vcjob.api.problems import errors
from vcjob.api.types import Object
from vcjob.core.check import check
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)


def job(plugins: Object, context: Object | None = None, **tasks: int) -> Object:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}],
            **({"securityContext": context} if context else {})}  # fmt: skip
    listed = [
        {"name": name, "replicas": replicas, "template": {"spec": spec}}
        for name, replicas in tasks.items()
    ]
    manifest = {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"plugins": plugins, "tasks": listed},
    }
    return apply_defaults(manifest, requires=REGISTRY.requires)


@pytest.mark.parametrize("tasks", [{"master": 1}, {"master": 1, "worker": 0}])
def test_a_launcher_without_workers_is_told_of_and_runs(tasks: Any) -> None:
    """P45."""
    found = check(job({"mpi": []}, **tasks))
    assert errors(found) == []
    assert [one.message for one in found if "MPI_HOST" in one.message]

    async def story(world: Simulation) -> None:
        await world.create_job(job({"mpi": []}, **tasks))
        await world.settle()
        await world.admit()
        await world.settle()
        assert await world.pod_names() == ["j-master-0"]
        await world.run_pending()
        await world.end_running()
        await world.settle()
        assert await world.phase("j") == "Completed"

    simulated(story)


def test_hosts_that_linux_would_not_pass_are_left_out_with_an_event() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job({"mpi": []}, master=1, worker=12_000))
        await world.settle()
        [event] = [one for one in await world.events() if "MPI_HOST" in one["message"]]
        assert (event["type"], event["count"]) == ("Warning", 1)
        assert "/etc/volcano" in event["message"]

    simulated(story)


@pytest.mark.parametrize(
    ("arguments", "context", "says"),
    [
        ([], {"runAsUser": 1000}, "who may not read /root/.ssh"),
        (["--ssh-key-file-path=/home/me/.ssh"], {"runAsUser": 1000, "fsGroup": 1000}, ""),
        (["--ssh-key-file-path=/home/me/.ssh"], {"runAsUser": 1000}, ""),
        ([], None, ""),
    ],
)
def test_a_user_who_cannot_use_its_keys_is_told(
    arguments: list[str], context: Object | None, says: str
) -> None:
    """P41 and P43; what ssh itself says to the modes is tested with real pods."""
    found = check(job({"ssh": arguments, "svc": []}, context, worker=2))
    assert len(found) == (1 if says else 0)
    assert all(one.warning and says in one.message for one in found)
