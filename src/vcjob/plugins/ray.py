"""The ray plugin: a head and its workers start as one Ray cluster. Source: plugins.md section 9."""

from collections.abc import Iterator

from vcjob.api import kinds, names
from vcjob.api.problems import Path, Problem
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.plugins.base import AddToPod, Argument, Plugin, PluginError, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.hosts import pod_spec
from vcjob.plugins.roles import argument_path, port_problems, role_problems

# Names of ports, and the arguments that hold their numbers.
_PORTS = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))
_ROLES = (("head", "headContainer"), ("worker", "workerContainer"))


def _ports(request: Request) -> dict[str, int]:
    return {name: request.number(argument) for name, argument in _PORTS}


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
        "metadata": {"name": f"{metadata.name}-head-svc"},
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
    yield from port_problems(request, *(argument for _, argument in _PORTS))
    yield from role_problems(request, ("worker",))
    numbers = list(_ports(request).values())
    if len(set(numbers)) < len(numbers):
        yield Problem("two ports of the head have the same number", request.path)
    head = request.text("head")
    if not request.hosts.find(head):
        yield Problem(
            f'no task is called "{head}", so that there is no head',
            argument_path(request, "head"),
            "name the task so, or give its name: --head=my-task",
        )
    for role, argument in _ROLES:
        yield from _container_problems(request, role, argument)


def _container_problems(request: Request, role: str, argument: str) -> Iterator[Problem]:
    wanted = request.text(argument)
    for position, task in enumerate(request.job.spec.tasks):
        if task.name != request.text(role):
            continue
        containers = pod_spec(task).get("containers")
        listed = [one for one in containers or () if isinstance(one, dict)]
        path: Path = ("spec", "tasks", position, "template", "spec", "containers")
        found = [one for one in listed if one.get("name") == wanted]
        if not found:
            known = [str(one.get("name")) for one in listed]
            yield Problem(
                f'task "{task.name}" has no container "{wanted}", so that Ray is started in none',
                path,
                suggest(wanted, known) or f"name it with --{argument}",
                warning=True,
            )
        elif found[0].get("command"):
            yield Problem(
                f'the plugin ray replaces the command of container "{wanted}"',
                (*path, listed.index(found[0]), "command"),
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
        Argument("port", 6379, "the port of the head"),
        Argument("dashboardPort", 8265, "the port of the dashboard"),
        Argument("clientPort", 10001, "the port for Ray clients"),
    ),
    requires=("svc",),
    kinds=(kinds.SERVICE,),
    problems=_problems,
    objects=_objects,
    pods=_pods,
)
