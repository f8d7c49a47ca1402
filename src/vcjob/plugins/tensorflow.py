"""The tensorflow plugin: TF_CONFIG for every container. Source: plugins.md section 6."""

from collections.abc import Iterator

import msgspec

from vcjob.api.problems import Problem
from vcjob.plugins.base import AddToPod, Argument, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.host_lists import MOST_ENV_BYTES
from vcjob.plugins.hosts import TaskHosts
from vcjob.plugins.roles import argument_path, quoted, role_problems

VARIABLE = "TF_CONFIG"
ROLES = ("ps", "worker", "chief", "evaluator")
_SINGLE = ("chief", "evaluator")  # tf.distribute's validation of a cluster
# Around the addresses: the names of roles, brackets, the pod's own task.
_FRAME_BYTES = 200


def _role_hosts(request: Request) -> dict[str, TaskHosts]:
    found = {role: request.hosts.find(request.text(role)) for role in ROLES}
    return {role: hosts for role, hosts in found.items() if hosts and hosts.replicas}


def _is_alone(request: Request) -> bool:
    tasks = request.job.spec.tasks
    return len(tasks) == 1 and tasks[0].replicas == 1


def _bytes(request: Request) -> int:
    """At most how many bytes the variable has, without making it."""
    around = len(f'":{request.number("port")}",') + 1
    total = len(VARIABLE) + _FRAME_BYTES
    for hosts in _role_hosts(request).values():
        one_name = len(hosts.address(0)) * hosts.replicas
        total += (one_name if hosts.fixed_hostname else hosts.list_bytes) + around * hosts.replicas
    return total


def _pods(request: Request) -> AddToPod | None:
    if _is_alone(request) or _bytes(request) > MOST_ENV_BYTES:
        return None
    port = request.number("port")
    role_hosts = _role_hosts(request)
    role_of = {hosts.task: role for role, hosts in reversed(role_hosts.items())}
    cluster = {
        role: [f"{hosts.address(index)}:{port}" for index in range(hosts.replicas)]
        for role, hosts in role_hosts.items()
    }
    start = '{"cluster":' + msgspec.json.encode(cluster).decode()

    def add(pod: PodDraft) -> None:
        own = {"type": role_of.get(pod.task, pod.task), "index": pod.index}
        text = f'{start},"task":{msgspec.json.encode(own).decode()}}}'
        for container in pod.containers:
            container.add_env([{"name": VARIABLE, "value": text}])

    return add


def _problems(request: Request) -> Iterator[Problem]:
    yield from role_problems(request, ROLES)
    if _is_alone(request):
        return
    if not _role_hosts(request):
        yield Problem(
            f"no task plays a role of TensorFlow (tasks called {quoted(request, ROLES)})",
            request.path,
            "name the tasks so, or give their names: --worker=my-task",
            warning=True,
        )
    for role in _SINGLE:
        task = request.hosts.find(request.text(role))
        if task and task.replicas > 1:
            yield Problem(
                f'task "{task.task}" has {task.replicas} replicas, but TensorFlow takes at most '
                f"one {role}",
                argument_path(request, role),
                "give it one replica",
                warning=True,
            )
    if _bytes(request) > MOST_ENV_BYTES:
        yield Problem(
            f"containers do not get {VARIABLE}: it would have about {_bytes(request)} bytes, and "
            f"Linux passes at most {MOST_ENV_BYTES} in one variable",
            request.path,
            "make it from the files in /etc/volcano",
            warning=True,
        )


PLUGIN = Plugin(
    name="tensorflow",
    help="Gives every container TF_CONFIG: the addresses of all tasks, and its own role and index.",
    arguments=(
        *(Argument(role, role, f"the task whose pods are {role}") for role in ROLES),
        Argument("port", 2222, "the port that every pod serves on", port=True),
    ),
    requires=("svc",),
    problems=_problems,
    pods=_pods,
)
