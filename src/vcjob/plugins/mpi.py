"""The mpi plugin: the launcher knows its workers. Source: plugins.md section 8.

mpirun logs in to the workers by ssh. What it needs for that (keys, short names, waiting for workers
that are not there yet) is in the client configuration of the ssh plugin.
"""

from collections.abc import Iterator

from vcjob.api.problems import Problem
from vcjob.plugins import ssh
from vcjob.plugins.arguments import MOST_PORT, parse_arguments
from vcjob.plugins.base import AddToPod, Argument, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.host_lists import MOST_ENV_BYTES
from vcjob.plugins.ports import declare, taken_name_problems
from vcjob.plugins.roles import argument_path, naming_hint

VARIABLE = "MPI_HOST"
_PORT_NAME = "mpijob-port"


def _bytes(request: Request) -> int:
    """The bytes of the environment string, with the zero byte that ends it."""
    worker = request.hosts.find(request.text("worker"))
    return len(VARIABLE) + 1 + worker.list_bytes + 1 if worker else 0


def _pods(request: Request) -> AddToPod:
    master, port = request.text("master"), request.number("port")
    worker = request.hosts.find(request.text("worker"))
    env = []
    if worker and _bytes(request) <= MOST_ENV_BYTES:
        env = [{"name": VARIABLE, "value": ",".join(worker.addresses)}]

    def add(pod: PodDraft) -> None:
        is_master = pod.task == master
        if is_master and not worker:
            return
        containers = tuple(pod.all_containers())
        for container in containers if is_master else ():
            container.add_env(env)
        declare(pod, containers, _PORT_NAME, port)

    return add


def _problems(request: Request) -> Iterator[Problem]:
    yield from _role_problems(request)
    groups = ("containers", "initContainers")
    yield from taken_name_problems(request.job, _PORT_NAME, request.number("port"), groups)
    yield from _port_problems(request)
    if _bytes(request) > MOST_ENV_BYTES:
        yield Problem(
            f"the master does not get {VARIABLE}: it would have {_bytes(request)} bytes, and Linux "
            f"passes at most {MOST_ENV_BYTES} in one variable",
            request.path,
            "take the hosts from the files in /etc/volcano",
            warning=True,
        )


def _port_problems(request: Request) -> Iterator[Problem]:
    ssh_tokens = request.job.spec.plugins.get(ssh.PLUGIN.name, ())
    clients = parse_arguments(ssh.PLUGIN.arguments, ssh_tokens).values["ssh-port"]
    port = request.number("port")
    if port != clients and all(0 < one <= MOST_PORT for one in (port, int(clients))):
        yield Problem(
            f"containers declare port {port} for ssh, but clients use {clients}",
            argument_path(request, "port"),
            "give both plugins the same: --port to mpi, --ssh-port to ssh",
            warning=True,
        )


def _role_problems(request: Request) -> Iterator[Problem]:
    tasks = [task.name for task in request.job.spec.tasks]
    for role, lost in (
        ("master", "nobody launches anything"),
        ("worker", f"the master gets no {VARIABLE}"),
    ):
        task = request.text(role)
        if task not in tasks:
            yield Problem(
                f'no task is called "{task}", so that there is no {role} and {lost}',
                argument_path(request, role),
                naming_hint(role, task, tasks),
                warning=role == "worker",
            )
    master = request.hosts.find(request.text("master"))
    if master and master.replicas != 1:
        what = "each of which launches" if master.replicas else "so that nobody launches anything"
        yield Problem(
            f'the master\'s task "{master.task}" has {master.replicas or "no"} replicas, {what}',
            argument_path(request, "master"),
            "give it one replica",
            warning=True,
        )
    worker = request.hosts.find(request.text("worker"))
    if worker and request.text("worker") == request.text("master"):
        yield Problem(
            f'--master and --worker name the same task "{worker.task}"',
            argument_path(request, "worker"),
            "one task plays one role",
            warning=True,
        )
    elif worker and not worker.replicas:
        yield Problem(
            f'the workers\' task "{worker.task}" has no replicas, so that {VARIABLE} is empty',
            argument_path(request, "worker"),
            "give it replicas, or let the master run alone",
            warning=True,
        )


PLUGIN = Plugin(
    name="mpi",
    help="Gives the launcher MPI_HOST, the host names of all workers.",
    arguments=(
        Argument("master", "master", "the task whose pod launches"),
        Argument("worker", "worker", "the task whose pods are launched on"),
        Argument("port", 22, "the port of the ssh servers", port=True),
    ),
    requires=("svc", "ssh"),
    problems=_problems,
    pods=_pods,
)
