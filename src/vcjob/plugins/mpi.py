"""The mpi plugin: the launcher knows its workers. Source: plugins.md section 8."""

from collections.abc import Iterator

from vcjob.api.problems import Problem
from vcjob.plugins.base import AddToPod, Argument, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.host_lists import MOST_ENV_BYTES
from vcjob.plugins.roles import argument_path, port_problems, role_problems

VARIABLE = "MPI_HOST"
_PORT_NAME = "mpijob-port"


def _fits(request: Request) -> bool:
    worker = request.hosts.find(request.text("worker"))
    return worker is None or len(VARIABLE) + 2 + worker.list_bytes <= MOST_ENV_BYTES


def _pods(request: Request) -> AddToPod:
    master, port = request.text("master"), request.number("port")
    worker = request.hosts.find(request.text("worker"))
    env = []
    if worker and _fits(request):
        env = [{"name": VARIABLE, "value": ",".join(worker.addresses)}]

    def add(pod: PodDraft) -> None:
        is_master = pod.task == master
        if is_master and worker is None:
            return
        for container in pod.all_containers():
            if is_master:
                container.add_env(env)
            container.add_port(_PORT_NAME, port)

    return add


def _problems(request: Request) -> Iterator[Problem]:
    yield from port_problems(request, "port")
    yield from role_problems(request, ("worker",))
    for role, warning in (("master", False), ("worker", True)):
        task = request.text(role)
        if not request.hosts.find(task):
            yield Problem(
                f'no task is called "{task}", so that there is no {role}',
                argument_path(request, role),
                f"name the task so, or give its name: --{role}=my-task",
                warning=warning,
            )
    if not _fits(request):
        yield Problem(
            f"the master does not get {VARIABLE}: Linux passes at most {MOST_ENV_BYTES} bytes in "
            "one variable",
            request.path,
            "read the hosts from the files in /etc/volcano",
            warning=True,
        )


PLUGIN = Plugin(
    name="mpi",
    help="Gives the launcher MPI_HOST, the host names of all workers.",
    arguments=(
        Argument("master", "master", "the task whose pod launches"),
        Argument("worker", "worker", "the task whose pods are launched on"),
        Argument("port", 22, "the port of the ssh servers"),
    ),
    requires=("svc", "ssh"),
    problems=_problems,
    pods=_pods,
)
