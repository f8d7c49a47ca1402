import shutil
import socket
import subprocess
from typing import Any

import pytest

from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)


def blueprint(*tokens: str, pod: Any = None, **tasks: int) -> Blueprint:
    template = {"spec": {"containers": [{"name": "c"}], **(pod or {})}}
    listed = [{"name": n, "replicas": r, "template": template} for n, r in tasks.items()]
    plugins = {"svc": ["--inject-hosts-env=false"], "pytorch": list(tokens)}
    job = {"metadata": {"name": "p"}, "spec": {"tasks": listed, "plugins": plugins}}
    return Blueprint(Job.of(job), REGISTRY)


def env(made: Blueprint, task: str, index: int = 0) -> dict[str, str]:
    entries = made.pod(task, index)["spec"]["containers"][0].get("env", [])
    return {entry["name"]: entry["value"] for entry in entries}


def test_ranks_are_contiguous_and_count_only_the_two_tasks() -> None:
    made = blueprint(master=1, worker=3, extra=2)
    ranks = [env(made, "master")["RANK"], *(env(made, "worker", i)["RANK"] for i in range(3))]
    assert ranks == ["0", "1", "2", "3"]
    assert env(made, "extra") == {
        "MASTER_ADDR": "p-master-0.p",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "4",
    }


def test_without_a_master_pods_are_left_alone() -> None:
    made = blueprint(worker=2)
    assert env(made, "worker") == {}
    assert [one.warning for one in made.problems] == [True]


def test_a_port_that_is_listed_is_not_listed_again() -> None:
    ports = [{"containerPort": 23456, "name": "mine"}]
    made = blueprint(pod={"containers": [{"name": "c", "ports": ports}]}, master=1)
    assert made.pod("master", 0)["spec"]["containers"][0]["ports"] == ports
    [added] = blueprint(master=1).pod("master", 0)["spec"]["containers"][0]["ports"]
    assert added == {"name": "pytorchjob-port", "containerPort": 23456}


def test_on_the_network_of_the_node_a_port_is_declared_once_a_pod() -> None:
    """Kubernetes refuses a pod that takes a port of its node twice."""
    pair: list[Object] = [{"name": "a"}, {"name": "b"}]
    spec = blueprint(pod={"containers": pair, "hostNetwork": True}, master=1).pod("master", 0)
    assert [len(one.get("ports", [])) for one in spec["spec"]["containers"]] == [1, 0]
    own: list[Object] = [{"name": "a"}, {"name": "b", "ports": [{"containerPort": 23456}]}]
    spec = blueprint(pod={"containers": own, "hostNetwork": True}, master=1).pod("master", 0)
    assert [len(one.get("ports", [])) for one in spec["spec"]["containers"]] == [0, 1]


def test_a_master_alone_and_one_with_its_workers_are_fine() -> None:
    assert blueprint(master=1).problems == ()
    assert blueprint(master=1, worker=2, tensorboard=1).problems == ()


def waiters(made: Blueprint, task: str) -> list[Object]:
    found: list[Object] = made.pod(task, 0)["spec"].get("initContainers", [])
    return found


def test_only_workers_wait_and_only_when_asked_to() -> None:
    made = blueprint("--wait-master-enabled", "--wait-master-image=i", master=1, worker=1)
    [waiter] = waiters(made, "worker")
    assert (waiter["name"], waiter["image"]) == ("wait-for-master", "i")
    assert not waiters(made, "master")
    assert not waiters(blueprint(master=1, worker=1), "worker")
    own = {"initContainers": [{"name": "wait-for-master", "image": "mine"}]}
    [kept] = waiters(blueprint("--wait-master-enabled", pod=own, master=1, worker=1), "worker")
    assert kept["image"] == "mine"


@pytest.mark.skipif(not shutil.which("bash"), reason="the script needs nc or bash")
def test_the_script_ends_when_the_master_listens_and_fails_when_it_does_not() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        tokens = ("--wait-master-enabled", "--wait-master-timeout=0", f"--port={port}")
        [waiter] = waiters(blueprint(*tokens, master=1, worker=1), "worker")
        command = [part.replace("p-master-0.p", "127.0.0.1") for part in waiter["command"]]
        absent = subprocess.run(command, check=False, capture_output=True, text=True)
        assert absent.returncode == 1
        assert "no master after 0 s" in absent.stderr
        server.listen()
        there = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (there.returncode, there.stderr) == (0, "")


@pytest.mark.parametrize(
    ("made", "message", "warning"),
    [
        (blueprint("--port=0", master=1), "--port=0 is no port", False),
        (blueprint(master=2), "each has the rank 0", True),
        (blueprint(worker=1), "there is no master", True),
        (blueprint("--worker=wroker", master=1, worker=1), "nobody but the master has a", True),
        (blueprint(master=1, trainer=2), "nobody but the master has a rank", True),
        (
            blueprint("--wait-master-enabled", "--wait-master-image=", master=1),
            "must name an image",
            False,
        ),
        (
            blueprint("--wait-master-enabled", "--wait-master-image=no such", master=1),
            "must name an image",
            False,
        ),
        (
            blueprint("--wait-master-enabled", "--wait-master-timeout=0", master=1),
            "more than 0 seconds",
            False,
        ),
    ],
)
def test_what_cannot_work_is_told(made: Blueprint, message: str, warning: bool) -> None:
    [problem] = made.problems
    assert message in problem.message
    assert problem.warning == warning
    assert problem.path[:3] == ("spec", "plugins", "pytorch")
