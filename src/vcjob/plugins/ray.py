"""The ray plugin: a head and its workers start as one Ray cluster. Source: plugins.md section 9."""

import itertools
from collections.abc import Iterator

from vcjob.api import kinds, names
from vcjob.api.problems import Path, Problem
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.plugins.base import AddToPod, Argument, Plugin, PluginError, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.ports import clashes, containers_of
from vcjob.plugins.roles import (
    argument_path,
    made_name_problems,
    naming_hint,
    role_problems,
)

# Names of ports, and the arguments that hold their numbers.
_PORTS = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))
_ROLES = (("head", "headContainer"), ("worker", "workerContainer"))


def _ports(request: Request) -> dict[str, int]:
    return {name: request.number(argument) for name, argument in _PORTS}


def _service_name(job: str) -> str:
    return f"{job}-head-svc"


def _objects(request: Request) -> Iterator[Object]:
    metadata = request.job.metadata
    selector = {
        names.JOB_NAME: metadata.name,
        names.JOB_NAMESPACE: metadata.namespace,
        names.TASK_SPEC: request.text("head"),
    }
    yield {
        "apiVersion": kinds.SERVICE.api_version,
        "kind": kinds.SERVICE.kind,
        "metadata": {"name": _service_name(metadata.name)},
        "spec": {
            "selector": selector,
            "ports": [
                {"name": name, "port": number, "protocol": "TCP", "targetPort": name}
                for name, number in _ports(request).items()
            ],
        },
    }


def _pods(request: Request) -> AddToPod:
    head = request.hosts.find(request.text("head"))
    ports = _ports(request)
    start_head = (
        f"ray start --head --block --dashboard-host=0.0.0.0 --port={ports['gcs']} "
        f"--dashboard-port={ports['dashboard']} --ray-client-server-port={ports['client-server']}"
    )
    worker_task = request.text("worker")

    def add(pod: PodDraft) -> None:
        if head is None:
            raise PluginError(f'the plugin ray finds no task called "{request.text("head")}"')
        for container in pod.containers:
            if pod.task == head.task and container.name == request.text("headContainer"):
                for name, number in ports.items():
                    container.add_port(name, number)
                container.set_command(["sh", "-c", start_head])
            elif pod.task == worker_task and container.name == request.text("workerContainer"):
                address = f"{head.address(0)}:{ports['gcs']}"
                container.set_command(["sh", "-c", f"ray start --block --address={address}"])

    return add


def _problems(request: Request) -> Iterator[Problem]:
    yield from role_problems(request, ("worker",))
    for (_, one), (_, other) in itertools.combinations(_PORTS, 2):
        if (number := request.number(one)) == request.number(other):
            message = f"--{one} and --{other} are both {number}"
            yield Problem(message, request.path, "give each port of the head a number of its own")
    yield from made_name_problems(request, "a Service", _service_name)
    yield from _head_problems(request)
    for role, argument in _ROLES:
        yield from _container_problems(request, role, argument)


def _head_problems(request: Request) -> Iterator[Problem]:
    name = request.text("head")
    path = argument_path(request, "head")
    head = request.hosts.find(name)
    if not head:
        yield Problem(
            f'no task is called "{name}", so that there is no head',
            path,
            naming_hint("head", name, [task.name for task in request.job.spec.tasks]),
        )
    elif request.text("worker") == name:
        yield Problem(
            f'--head and --worker name the same task "{name}", so that there is no worker',
            argument_path(request, "worker"),
            "one task plays one role",
            warning=True,
        )
    elif head.replicas != 1:
        what = (
            f"has {head.replicas} replicas; each is a head of its own, and workers go to the first"
            if head.replicas
            else "has no replicas, so that workers have no head to go to"
        )
        hint = "give it one replica"
        yield Problem(f'the head\'s task "{name}" {what}', path, hint, warning=True)


def _container_problems(request: Request, role: str, argument: str) -> Iterator[Problem]:
    wanted = request.text(argument)
    for position, task in enumerate(request.job.spec.tasks):
        if task.name != request.text(role):
            continue
        listed = containers_of(task)
        path: Path = ("spec", "tasks", position, "template", "spec", "containers")
        known = [str(one.get("name")) for one in listed]
        if wanted not in known:
            yield Problem(
                f'task "{task.name}" has no container "{wanted}", so that Ray is started in none',
                path,
                suggest(wanted, known) or f"name it with --{argument}",
                warning=True,
            )
            continue
        container = known.index(wanted)
        for field in ("command", "args"):
            if listed[container].get(field):
                yield _replaced(wanted, field, (*path, container, field))
        if role == "head":
            yield from clashes(task, path, wanted, _ports(request))


def _replaced(container: str, field: str, path: Path) -> Problem:
    """What the user wanted to run, and Ray is run in its place."""
    what = "replaces the command" if field == "command" else "starts Ray in place of the arguments"
    return Problem(
        f'the plugin ray {what} of container "{container}"',
        path,
        "run your program in another container, or submit it to the cluster as a Ray job",
        warning=True,
    )


PLUGIN = Plugin(
    name="ray",
    help="Starts Ray in the head's and the workers' containers, and makes a Service for the head.",
    arguments=(
        Argument("head", "head", "the task whose pod is the head"),
        Argument("headContainer", "head", "the container that Ray's head runs in"),
        Argument("worker", "worker", "the task whose pods are workers"),
        Argument("workerContainer", "worker", "the container that Ray's workers run in"),
        Argument("port", 6379, "the port of the head", port=True),
        Argument("dashboardPort", 8265, "the port of the dashboard", port=True),
        Argument("clientPort", 10001, "the port for Ray clients", port=True),
    ),
    requires=("svc",),
    kinds=(kinds.SERVICE,),
    problems=_problems,
    objects=_objects,
    pods=_pods,
)
