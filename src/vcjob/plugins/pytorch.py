"""The pytorch plugin: rendezvous and rank of every container. Source: plugins.md section 7."""

from collections.abc import Iterator

from vcjob.api.problems import Problem
from vcjob.api.types import Object, Task
from vcjob.plugins.base import AddToPod, Argument, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.ports import declare, taken_name_problems
from vcjob.plugins.roles import argument_path, naming_hint, role_problems

_PORT_NAME = "pytorchjob-port"
_WAITER = "wait-for-master"
_ROLES = ("master", "worker")
_PAUSE_SECONDS = 2


def _find_task(request: Request, role: str) -> Task | None:
    tasks = request.job.spec.tasks
    return next((task for task in tasks if task.name == request.text(role)), None)


def _pods(request: Request) -> AddToPod | None:
    master = request.hosts.find(request.text("master"))
    if not master:
        return None
    worker_task = request.text("worker")
    worker = request.hosts.find(worker_task)
    port = request.number("port")
    world = master.replicas + (worker.replicas if worker and worker is not master else 0)
    common = [
        {"name": "MASTER_ADDR", "value": master.address(0)},
        {"name": "MASTER_PORT", "value": str(port)},
        {"name": "WORLD_SIZE", "value": str(world)},
    ]
    waits = request.switch("wait-master-enabled")
    waiter = _waiter(request, master.address(0))

    def add(pod: PodDraft) -> None:
        env = common
        if pod.task == master.task:
            env = [*common, {"name": "RANK", "value": "0"}]
        elif pod.task == worker_task:
            env = [*common, {"name": "RANK", "value": str(pod.index + 1)}]
        for container in pod.containers:
            container.add_env(env)
        declare(pod, pod.containers, _PORT_NAME, port)
        is_worker = pod.task == worker_task and pod.task != master.task
        if waits and is_worker and all(one.name != _WAITER for one in pod.init_containers):
            pod.add_init_container(waiter)

    return add


def _waiter(request: Request, master: str) -> Object:
    """An init container that ends when the master accepts connections, or fails in time."""
    port, timeout = request.number("port"), request.number("wait-master-timeout")
    where = f"{master} {port}"
    script = f"""\
echo "waiting for the master {where}"
waited=0
until nc -z -w {_PAUSE_SECONDS} {where} 2>/dev/null ||
  (command -v bash >/dev/null && bash -c '</dev/tcp/{master}/{port}') 2>/dev/null; do
  if [ "$waited" -ge {timeout} ]; then
    echo "no master after {timeout} s" >&2
    exit 1
  fi
  sleep {_PAUSE_SECONDS}
  waited=$((waited + {_PAUSE_SECONDS}))
done
echo "the master is there"
"""
    return {
        "name": _WAITER,
        "image": request.text("wait-master-image"),
        "command": ["sh", "-c", script],
    }


def _problems(request: Request) -> Iterator[Problem]:
    yield from role_problems(request, _ROLES, told=_ROLES)
    yield from _master_problems(request)
    yield from taken_name_problems(request.job, _PORT_NAME, request.number("port"))
    if request.switch("wait-master-enabled"):
        yield from _waiter_problems(request)


def _master_problems(request: Request) -> Iterator[Problem]:
    tasks = [task.name for task in request.job.spec.tasks]
    idle = [task for task in tasks if task not in map(request.text, _ROLES)]
    master, worker = _find_task(request, "master"), request.text("worker")
    if not master:
        name = request.text("master")
        yield Problem(
            f'no task is called "{name}", so that there is no master and pods get nothing',
            argument_path(request, "master"),
            naming_hint("master", name, idle),
            warning=True,
        )
        return
    if worker not in tasks and (idle or worker != "worker"):
        yield Problem(
            f'no task is called "{worker}", so that nobody but the master has a rank',
            argument_path(request, "worker"),
            naming_hint("worker", worker, idle),
            warning=True,
        )
    if master.replicas != 1:
        what = (
            f"has {master.replicas} replicas; each has the rank 0"
            if master.replicas
            else "has no replicas, so that there is no master"
        )
        yield Problem(
            f'the master\'s task "{master.name}" {what}',
            argument_path(request, "master"),
            "give it one replica, and the others a task of their own",
            warning=True,
        )


def _waiter_problems(request: Request) -> Iterator[Problem]:
    if request.number("wait-master-timeout") <= 0:
        path = argument_path(request, "wait-master-timeout")
        message = "--wait-master-timeout must be more than 0 seconds"
        yield Problem(message, path, "write a number such as 300")
    image = request.text("wait-master-image")
    if image.split() != [image]:
        path = argument_path(request, "wait-master-image")
        yield Problem("--wait-master-image must name an image", path, "such as busybox:1.36.1")


PLUGIN = Plugin(
    name="pytorch",
    help="Gives every container MASTER_ADDR, MASTER_PORT, WORLD_SIZE and its RANK.",
    arguments=(
        Argument("master", "master", "the task whose pod is the master"),
        Argument("worker", "worker", "the task whose pods are workers"),
        Argument("port", 23456, "the port that the master serves on", port=True),
        Argument("wait-master-enabled", False, "let workers wait until the master is there"),
        Argument("wait-master-timeout", 300, "after how many seconds they give up"),
        Argument("wait-master-image", "busybox:1.36.1", "the image that waits: it needs sh and nc"),
    ),
    requires=("svc",),
    problems=_problems,
    pods=_pods,
)
