from typing import Any

import pytest

from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.base import PluginError
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)


def blueprint(*tokens: str, pod: Any = None, job_name: str = "r", **tasks: int) -> Blueprint:
    listed = []
    for name, replicas in (tasks or {"head": 1, "worker": 2}).items():
        spec = pod or {"containers": [{"name": name, "args": ["x"]}, {"name": "other"}]}
        listed.append({"name": name, "replicas": replicas, "template": {"spec": spec}})
    plugins = {"svc": ["--inject-hosts-env=false"], "ray": list(tokens)}
    job = {"metadata": {"name": job_name}, "spec": {"tasks": listed, "plugins": plugins}}
    return Blueprint(Job.of(job), REGISTRY)


def containers(made: Blueprint, task: str) -> list[Object]:
    found: list[Object] = made.pod(task, 0)["spec"]["containers"]
    return found


def test_head_and_workers_start_ray_and_other_containers_are_left_alone() -> None:
    made = blueprint()
    head, other = containers(made, "head")
    assert head["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 "
        "--ray-client-server-port=10001",
    ]
    assert [port["containerPort"] for port in head["ports"]] == [6379, 8265, 10001]
    assert head["args"] == ["x"]
    assert "command" not in other
    worker, _ = containers(made, "worker")
    assert worker["command"] == ["sh", "-c", "ray start --block --address=r-head-0.r:6379"]
    assert "ports" not in worker


def test_a_service_leads_to_the_head() -> None:
    made = blueprint("--port=1")
    [service] = [
        obj for obj in made.supporting_objects() if obj["metadata"]["name"] == "r-head-svc"
    ]
    assert service["spec"]["selector"]["volcano.sh/task-spec"] == "head"
    assert service["spec"]["ports"][0] == {
        "name": "gcs",
        "port": 1,
        "protocol": "TCP",
        "targetPort": "gcs",
    }


def test_without_a_head_no_pod_is_made() -> None:
    with pytest.raises(PluginError, match='no task called "head"'):
        blueprint(worker=1).pod("worker", 0)


def declaring(**port: Any) -> Object:
    """A head that declares the dashboard in another way than the Service looks for it."""
    declared = {"name": "dashboard", "containerPort": 8265, **port}
    return {"containers": [{"name": "head", "ports": [declared]}]}


COMMAND = {"containers": [{"name": "head", "command": ["python"]}]}


@pytest.mark.parametrize(
    ("made", "message", "warning"),
    [
        (blueprint(worker=1), "there is no head", False),
        (blueprint("--port=0"), "--port=0 is no port", False),
        (blueprint("--port=8265"), "--port and --dashboardPort are both 8265", False),
        (blueprint("--headContainer=haed"), 'no container "haed"', True),
        (blueprint("--worker=wroker"), '--worker names "wroker"', True),
        (blueprint(pod=COMMAND, head=1), "replaces the command", True),
        (blueprint("--workerContainer=main"), 'task "worker" has no container "main"', True),
        (blueprint(job_name="r" * 55), "a Service named", False),
        (blueprint(head=1, wokers=1), 'so that task "wokers" plays no role', True),
        (blueprint(pod=declaring(protocol="UDP"), head=1), "the Service looks for port", True),
        (blueprint(pod=declaring(containerPort=1), head=1), 'the name "dashboard"', True),
    ],
)
def test_what_cannot_work_is_told(made: Blueprint, message: str, warning: bool) -> None:
    [problem] = [one for one in made.problems if message in one.message]
    assert problem.warning == warning
    assert problem.path


def test_a_job_whose_service_just_fits_is_fine() -> None:
    bare = {"containers": [{"name": "head"}]}
    assert blueprint(job_name="r" * 54, pod=bare, head=1).problems == ()
