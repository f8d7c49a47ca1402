"""The hcclrank plugin: the rank of a pod as an annotation. Source: plugins.md section 10."""

from collections.abc import Iterator

from vcjob.api.problems import Problem
from vcjob.api.types import Task
from vcjob.plugins.base import AddToPod, Argument, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.ports import containers_of
from vcjob.plugins.roles import quoted, role_problems

ANNOTATION = "hccl/rankIndex"
_ROLES = ("master", "worker")


def _pods(request: Request) -> AddToPod:
    master, worker = request.text("master"), request.text("worker")
    master_hosts = request.hosts.find(master)
    masters = master_hosts.replicas if master_hosts else 0

    def add(pod: PodDraft) -> None:
        if pod.annotations.get(ANNOTATION):
            return
        if rank := _rank_of_containers(pod):
            pod.annotations[ANNOTATION] = rank
        elif pod.task == master:
            pod.annotations[ANNOTATION] = str(pod.index)
        elif pod.task == worker:
            pod.annotations[ANNOTATION] = str(masters + pod.index)

    return add


def _rank_of_containers(pod: PodDraft) -> str:
    """The first literal RANK of a container, which the pytorch plugin may have put there."""
    for container in pod.containers:
        for entry in container.env:
            if entry.get("name") == "RANK" and entry.get("value"):
                return str(entry["value"])
    return ""


def _problems(request: Request) -> Iterator[Problem]:
    yield from role_problems(request, _ROLES)
    roles = map(request.text, _ROLES)
    ranked = any(map(request.hosts.find, roles)) or "pytorch" in request.job.spec.plugins
    if not ranked and not any(map(_has_own_rank, request.job.spec.tasks)):
        yield Problem(
            f"no task plays a role (tasks called {quoted(request, _ROLES)}), so no pod gets a rank",
            request.path,
            "name the tasks so, or give their names: --worker=my-task",
            warning=True,
        )


def _has_own_rank(task: Task) -> bool:
    """Whether the template says the rank itself."""
    metadata = task.template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict) and annotations.get(ANNOTATION):
        return True
    variables = [one.get("env") for one in containers_of(task)]
    return any(
        isinstance(entry, dict) and entry.get("name") == "RANK" and entry.get("value")
        for env in variables
        for entry in (env if isinstance(env, list) else ())
    )


PLUGIN = Plugin(
    name="hcclrank",
    help="Gives every pod its rank in the annotation hccl/rankIndex.",
    arguments=(
        Argument("master", "master", "the task whose pods have the first ranks"),
        Argument("worker", "worker", "the task whose pods have the ranks behind"),
    ),
    marked=False,
    problems=_problems,
    pods=_pods,
)
