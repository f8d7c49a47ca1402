"""The plugin torchrun: ``torchrun train.py`` in every pod of one task is one training."""

from vcjob.api.problems import Problem
from vcjob.plugins.base import AddToPod, Argument, Plugin, Request
from vcjob.plugins.draft import PodDraft


def _problems(request: Request) -> list[Problem]:
    task = request.text("task")
    if request.hosts.find(task):
        return []
    return [Problem(f'no task is called "{task}"', request.path, "name it: --task=my-task")]


def _pods(request: Request) -> AddToPod:
    hosts, port = request.hosts.find(request.text("task")), request.number("port")

    def add(pod: PodDraft) -> None:
        if hosts and pod.task == hosts.task:
            names = ("PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
            values = map(str, (hosts.replicas, pod.index, hosts.address(0), port))
            env = [{"name": n, "value": v} for n, v in zip(names, values, strict=True)]
            for container in pod.containers:
                container.add_env(env)

    return add


PLUGIN = Plugin(
    name="torchrun",
    help="Tells torchrun how many pods there are, which one this is, and where they meet.",
    arguments=(
        Argument("task", "worker", "the task whose pods train together"),
        Argument("port", 29500, "the port of the first pod at which they meet", port=True),
    ),
    requires=("svc",),
    problems=_problems,
    pods=_pods,
)
