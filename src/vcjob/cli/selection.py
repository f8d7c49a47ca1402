"""What a word on the command line names: a Job, a task of it, or one of its pods.

One grammar for every command::

    JOB            the Job; where pods are meant, all of its pods
    JOB/worker     the pods of its task "worker"
    JOB/worker-0   one pod, as host lists and labels in the output name it

A pod's full name works after the slash too.
"""

from collections.abc import Iterable

import click
import msgspec
from click.shell_completion import CompletionItem

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import JOB, POD
from vcjob.api.names import JOB_NAME, TASK_INDEX, TASK_SPEC, pod_name
from vcjob.api.suggestions import closest, suggest
from vcjob.api.types import Job, Object
from vcjob.cli.podtext import short_pod_name
from vcjob.cli.target import Target
from vcjob.controller.cluster import Forbidden, NotFound


class NothingSelected(VcjobError):
    """There is no such Job, task or pod."""


class Reference(msgspec.Struct, frozen=True):
    """``JOB`` or ``JOB/PART``, as it was written; ``part`` is empty for the whole Job."""

    job: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.job}/{self.part}" if self.part else self.job


class ReferenceType(click.ParamType[Reference]):
    """The type of arguments that name a Job or pods of one."""

    name = "JOB[/POD]"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Reference:
        """Read the word; fails with what would be right."""
        job, slash, part = value.partition("/")
        if not job or "/" in part or (slash and not part):
            self.fail(f"{value!r} is not JOB or JOB/POD, for example mnist/worker-0", param, ctx)
        return Reference(job, part)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Jobs, and behind a slash their pods."""
        from vcjob.cli.completing import complete

        return complete(ctx, incomplete, pods=True)


class JobNameType(click.ParamType[str]):
    """The type of arguments that name a Job."""

    name = "JOB"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read the word; fails where pods are named, which is not meant here."""
        if "/" in value:
            self.fail(f"{value!r}: this is about whole Jobs, so name one without /", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Jobs."""
        from vcjob.cli.completing import complete

        return complete(ctx, incomplete, pods=False)


def one_reference(words: tuple[Reference, ...]) -> Reference:
    """The only one of several arguments; raises click.UsageError that shows the right form."""
    if len(words) > 1:
        first, second = words[0], words[1]
        raise click.UsageError(f"a pod is named with a slash: {first.job}/{second}")
    return words[0]


async def find_job(target: Target, name: str) -> Object:
    """The Job of that name; raises NothingSelected with what was probably meant."""
    try:
        return await target.cluster.get(JOB, target.namespace, name)
    except NotFound as error:
        raise NothingSelected(await _no_job(target, name)) from error


async def _no_job(target: Target, name: str) -> str:
    said = f'there is no Job "{name}" in namespace "{target.namespace}"'
    here = [_name(job) for job in (await target.cluster.list(JOB, target.namespace)).items]
    if job := job_of(name, here):
        return f"{said}; for the pod of Job {job} write {job}/{short_pod_name(job, name)}"
    try:
        everywhere = (await target.cluster.list(JOB)).items
    except Forbidden:
        everywhere = []
    elsewhere = sorted(j["metadata"]["namespace"] for j in everywhere if _name(j) == name)
    if elsewhere:
        return f"{said}, but in {', '.join(elsewhere)}: use -n {elsewhere[0]}"
    hint = suggest(name, here)
    return f"{said}{f'; {hint}' if hint else '; vcjob ls -A shows what there is'}"


async def pods_of(target: Target, job: Object) -> list[Object]:
    """The Job's own pods, task by task and by index."""
    labels = {JOB_NAME: _name(job)}
    listed = await target.cluster.list(POD, job["metadata"]["namespace"], labels)
    own = [pod for pod in listed.items if belongs(pod, job)]
    tasks = [task.get("name", "") for task in job.get("spec", {}).get("tasks") or ()]
    return sorted(own, key=lambda pod: _place(pod, tasks))


def belongs(pod: Object, job: Object) -> bool:
    """Whether a pod is this very Job's, not a namesake's."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == job["metadata"]["uid"] for owner in owners)


def job_of(name: str, jobs: Iterable[str]) -> str:
    """To which of the Jobs an object belongs by its name: the one with the longest name."""
    owners = [job for job in jobs if name == job or name.startswith(f"{job}-")]
    return max(owners, key=len, default="")


def selects(part: str, job: str, pod: Object) -> bool:
    """Whether the part behind the slash (empty: all) names this pod or its task."""
    if not part:
        return True
    task = (pod["metadata"].get("annotations") or {}).get(TASK_SPEC)
    return part in (short_pod_name(job, _name(pod)), _name(pod), task)


async def find_pods(target: Target, reference: Reference) -> tuple[Object, list[Object]]:
    """The Job and those of its pods that are named; raises NothingSelected if there is none."""
    job = await find_job(target, reference.job)
    pods = await pods_of(target, job)
    found = [pod for pod in pods if selects(reference.part, reference.job, pod)]
    if not found:
        raise NothingSelected(_no_pod(job, reference, pods))
    return job, found


async def find_pod(target: Target, reference: Reference) -> Object:
    """The one pod that is named; raises NothingSelected if there are none or several."""
    if reference.part:
        # A Job may have thousands of pods; its name is enough to find one.
        job = await find_job(target, reference.job)
        short = short_pod_name(reference.job, reference.part)
        try:
            pod = await target.cluster.get(POD, target.namespace, f"{reference.job}-{short}")
        except NotFound:
            pass  # a task, or a mistake
        else:
            if belongs(pod, job):
                return pod
    _, pods = await find_pods(target, reference)
    if len(pods) > 1:
        names = [short_pod_name(reference.job, _name(pod)) for pod in pods]
        raise NothingSelected(
            f"{reference} has {len(pods)} pods; name one: {reference.job}/{names[0]}"
            f"{_and_others(reference.job, names[1:])}"
        )
    return pods[0]


def _no_pod(job: Object, reference: Reference, pods: Iterable[Object]) -> str:
    view = Job.of(job)
    state = view.status.state.phase or "new"
    names = [short_pod_name(reference.job, _name(pod)) for pod in pods]
    tasks = [task.name for task in view.spec.tasks]
    wanted = {
        short_pod_name(reference.job, pod_name(reference.job, task.name, index))
        for task in view.spec.tasks
        for index in range(task.replicas)
    }
    part = short_pod_name(reference.job, reference.part)
    if not part or part in wanted or part in tasks:
        said = f"pod {part}" if part in wanted else f"task {part}" if part else "pods"
        return f"{reference.job} has no {said} now; the Job is {state}"
    known = [*names, *tasks]
    best = closest(part, known)
    meant = f"did you mean {reference.job}/{best}?"
    hint = meant if best else f"its tasks are {', '.join(tasks)}"
    return f"Job {reference.job} has no pod or task {part}; {hint}"


def _and_others(job: str, names: list[str]) -> str:
    shown = ", ".join(f"{job}/{name}" for name in names[:3])
    return f", {shown}{', …' if len(names) > 3 else ''}" if shown else ""


def _place(pod: Object, tasks: list[str]) -> tuple[int, int, str]:
    annotations = pod["metadata"].get("annotations") or {}
    labels = pod["metadata"].get("labels") or {}
    task = annotations.get(TASK_SPEC, "")
    index = labels.get(TASK_INDEX) or annotations.get(TASK_INDEX) or ""
    return (
        tasks.index(task) if task in tasks else len(tasks),
        int(index) if index.isdecimal() else 0,
        _name(pod),
    )


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
