from typing import Any

import pytest

from vcjob.api.types import Job
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)


def blueprint(
    *arguments: str,
    ssh: tuple[str, ...] = (),
    container: dict[str, Any] | None = None,
    pod: dict[str, Any] | None = None,
    **tasks: int,
) -> Blueprint:
    template = {"spec": {"containers": [container or {"name": "c"}], **(pod or {})}}
    made = [
        {"name": name, "replicas": replicas, "template": template}
        for name, replicas in (tasks or {"master": 1, "worker": 2}).items()
    ]
    plugins = {"svc": [], "ssh": list(ssh), "mpi": list(arguments)}
    return Blueprint(
        Job.of({"metadata": {"name": "m"}, "spec": {"tasks": made, "plugins": plugins}}), REGISTRY
    )


def mpi_problems(made: Blueprint) -> list[tuple[str, bool]]:
    return [(one.message, one.warning) for one in made.problems if "mpi" in one.path]


def environment(pod: dict[str, Any]) -> dict[str, str]:
    env = pod["spec"]["containers"][0].get("env", [])
    return {one["name"]: one["value"] for one in env if "value" in one}


def test_the_master_knows_its_workers_and_everybody_declares_the_port() -> None:
    master, *workers = blueprint().pods()
    assert environment(master)["MPI_HOST"] == "m-worker-0.m,m-worker-1.m"
    assert all("MPI_HOST" not in environment(pod) for pod in workers)
    for pod in (master, *workers):
        assert pod["spec"]["containers"][0]["ports"] == [
            {"name": "mpijob-port", "containerPort": 22}
        ]
    assert mpi_problems(blueprint()) == []


@pytest.mark.parametrize(
    ("made", "says", "warning"),
    [
        (blueprint(master=1), 'no task is called "worker"', True),
        (blueprint(worker=1), 'no task is called "master"', False),
        (blueprint(master=1, worker=0), "MPI_HOST is empty", True),
        (blueprint("--worker=master", master=1), 'name the same task "master"', True),
        (blueprint(master=2, worker=1), "2 replicas, each of which launches", True),
        (blueprint(master=0, worker=1), "nobody launches anything", True),
        (blueprint("--port=2222"), "port 2222 for ssh, but clients use 22", True),
        (blueprint("--port=0"), "--port=0 is no port", False),
        (blueprint(master=1, worker=20_000), "the master does not get MPI_HOST", True),
        (
            blueprint(container={"name": "c",
                                 "ports": [{"name": "mpijob-port", "containerPort": 7}]}),
            'the name "mpijob-port" is needed for port 22', True,
        ),
    ],
)  # fmt: skip
def test_what_is_told(made: Blueprint, says: str, warning: bool) -> None:
    """User case P45: a Job without workers runs with none."""
    found = [told for told in mpi_problems(made) if says in told[0]]
    found += [
        (one.message, one.warning)
        for one in made.problems
        if "ports" in one.path and says in one.message
    ]
    assert [one for _, one in dict.fromkeys(found)] == [warning]


def test_init_containers_declare_the_port_too_under_the_same_name() -> None:
    """User case P48: on the network of the node each number is taken once a pod."""
    init = {"name": "i", "ports": [{"name": "mpijob-port", "containerPort": 7}]}
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [init]}
    [first, _] = [one for one in blueprint(pod=spec).problems if "ports" in one.path]
    assert 'the name "mpijob-port" is needed for port 22' in first.message
    assert first.path[2:] == (0, "template", "spec", "initContainers", 0, "ports", 0)
    made = blueprint(pod={**spec, "hostNetwork": True}).pod("master", 0)["spec"]
    assert [len(one.get("ports", [])) for one in made["containers"]] == [1, 0]
    assert len(made["initContainers"][0]["ports"]) == 2


def test_without_a_task_of_workers_the_master_is_left_alone() -> None:
    (master,) = blueprint(master=1).pods()
    assert "MPI_HOST" not in environment(master)
    assert "ports" not in master["spec"]["containers"][0]


def test_a_list_that_linux_would_not_pass_is_left_out() -> None:
    made = blueprint(master=1, worker=20_000)
    assert "MPI_HOST" not in environment(made.pod("master", 0))


def test_ports_of_both_plugins_go_together() -> None:
    assert mpi_problems(blueprint("--port=2222", ssh=("--ssh-port=2222",))) == []
