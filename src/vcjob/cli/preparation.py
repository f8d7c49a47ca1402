"""From loaded manifests to the objects a run starts with, and what speaks against starting them.

Whatever can be known to fail is told here, before the first pod: a program that containers will
not see, a plugin that is not there.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click
import msgspec

from vcjob.api.problems import Path, Problem, printable
from vcjob.api.types import Job, Object
from vcjob.cli.manifests import Loaded, LoadedJob, load_job, with_jobs
from vcjob.cli.problems import print_problems
from vcjob.core.blueprint import Blueprint
from vcjob.core.scale import InvalidScaling, overruled, parse_scalings, scale, task_names
from vcjob.local.agent.fields import unsupported
from vcjob.local.machine_view import MachineView
from vcjob.local.network.addresses import MOST_PODS
from vcjob.local.sandbox.launcher import BindMount, search_path
from vcjob.local.sandbox.machine import Machine
from vcjob.local.sandbox.paths import UnsafePath
from vcjob.local.sandbox.visibility import invisible
from vcjob.local.volumes.host_paths import Allowed, check_host_path
from vcjob.local.volumes.objects import VolumeRefused
from vcjob.local.volumes.plan import HostPath
from vcjob.plugins import svc
from vcjob.plugins.base import PluginError
from vcjob.plugins.registry import Registry, installed_plugins

# Stands for the content of a volume, which nobody knows before the pod runs.
_UNKNOWN = "/\u2400volume"


def obstacles(loaded: Loaded, view: MachineView) -> Iterator[Problem]:
    """What only shows with this machine and the installed plugins in view."""
    plugins = installed_plugins(third_party=True)
    yield from plugin_problems(loaded.jobs, plugins)
    yield from jobs_without_pods(loaded.jobs)
    yield from more_pods_than_addresses(loaded.jobs)
    yield from texts_no_program_can_be_given(loaded.jobs)
    for job in loaded.jobs:
        for number, task in enumerate(job.defaulted["spec"]["tasks"]):
            path = ("spec", "tasks", number, "template")
            for problem in unsupported(task["template"], view.maps, path):
                yield job.document.place(problem)
    yield from refused_host_paths(loaded.jobs, view.allowed)
    yield from hidden_host_lists(loaded.jobs, view.binds)
    yield from invisible_programs(loaded.jobs, plugins, view.machine, view.binds)
    for warning in view.machine.warnings:
        yield Problem(warning, warning=True)


def cleared(problems: Iterable[Problem], *, strict: bool) -> bool:
    """Show problems on standard error, and whether Jobs may start in spite of them; said if not."""
    listed = list(problems)
    print_problems(listed, err=True)
    if any(strict or not problem.warning for problem in listed):
        click.echo("vcjob: refused; nothing was started", err=True)
        return False
    return True


class Scalings(msgspec.Struct, frozen=True):
    """The manifest's Jobs with other replicas, and what was changed, a sentence each."""

    loaded: Loaded
    changes: list[str]


def apply_scalings(loaded: Loaded, texts: Sequence[str]) -> Scalings:
    """Apply ``--scale TASK=N`` to every Job that has the task; raises click.UsageError.

    What was wrong with such a Job no longer counts: it is checked as it is now.
    """
    if not texts:
        return Scalings(loaded, [])
    try:
        wanted = parse_scalings(texts)
    except InvalidScaling as error:
        raise click.UsageError(f"--scale: {error}") from error
    names = {name for job in loaded.jobs for name in task_names(job.written)}
    for task in wanted.keys() - names:
        raise click.UsageError(
            f'--scale: no Job has a task "{task}"; there are: {", ".join(sorted(names))}'
        )
    plugins = installed_plugins(third_party=True)
    changes = [f"--scale: {sentence}" for sentence in overruled(texts)]
    jobs = []
    for job in loaded.jobs:
        own = {task: wanted[task] for task in task_names(job.written) if task in wanted}
        scaled = scale(job.written, own)
        whose = f"{_shown_name(job)}: " if len(loaded.jobs) > 1 else ""
        changes += [f"{whose}{printable(change)}" for change in scaled.changes]
        jobs.append(load_job(job.document, scaled.job, plugins))
    return Scalings(with_jobs(loaded, jobs), changes)


def _shown_name(job: LoadedJob) -> str:
    metadata = job.defaulted.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return printable(str(named.get("name") or named.get("generateName") or "?"))


def plugin_problems(jobs: Iterable[LoadedJob], registry: Registry) -> Iterator[Problem]:
    """What the Jobs' plugins say that checking alone does not: a plugin that is not installed."""
    for job in jobs:
        blueprint = Blueprint(Job.of(job.defaulted), registry)
        known = {problem.message for problem in job.problems}
        for problem in blueprint.problems:
            if problem.message not in known and not problem.warning:
                yield job.document.place(problem)


def jobs_without_pods(jobs: Iterable[LoadedJob]) -> Iterator[Problem]:
    """A warning for each Job that runs nothing: Volcano leaves such a Job in Running for ever."""
    for job in jobs:
        if not any(task["replicas"] for task in job.defaulted["spec"]["tasks"]):
            yield job.document.place(
                Problem(
                    "no task has replicas: the Job runs no pod, and does not end by itself",
                    ("spec", "tasks"),
                    warning=True,
                )
            )


def more_pods_than_addresses(jobs: Iterable[LoadedJob]) -> Iterator[Problem]:
    """An error at the first task that this machine has no more addresses for."""
    pods = 0
    for job in jobs:
        for number, task in enumerate(job.defaulted["spec"]["tasks"]):
            pods += task["replicas"]
            if pods > MOST_PODS:
                yield job.document.place(
                    Problem(
                        f"the tasks up to this one make {pods} pods together, but this machine has "
                        f"addresses for {MOST_PODS}",
                        ("spec", "tasks", number, "replicas"),
                        "run fewer: --scale TASK=N",
                    )
                )
                return


def texts_no_program_can_be_given(jobs: Iterable[LoadedJob]) -> Iterator[Problem]:
    """Arguments and variables with a NUL, which ends a text for every program (execve(2))."""
    for path, container, job in _containers(jobs):
        texts: list[tuple[Path, str]] = [
            ((field, position), text)
            for field in ("command", "args")
            for position, text in enumerate(container.get(field) or ())
        ]
        texts += [
            (("env", position, "value"), entry.get("value") or "")
            for position, entry in enumerate(container.get("env") or ())
        ]
        for below, text in texts:
            if "\0" in text:
                yield job.document.place(
                    Problem(
                        "no program can be given a text with the character U+0000",
                        (*path, *below),
                        "leave it out, or put it in a file (a ConfigMap's binaryData)",
                    )
                )


def invisible_programs(
    jobs: Iterable[LoadedJob], registry: Registry, machine: Machine, binds: Sequence[BindMount]
) -> Iterator[Problem]:
    """Programs and scripts that a container of the Jobs will not find, with the cures.

    Containers are looked at as plugins leave them: ray says what they run.
    """
    made = (_as_made(job, registry) for job in jobs)
    for path, container, job in _containers(made):
        if problem := _invisible(container, (*path, "command"), machine, binds):
            yield job.document.place(problem)


def _as_made(job: LoadedJob, registry: Registry) -> LoadedJob:
    """The Job with the spec of each task's first pod in place of its template's."""
    blueprint = Blueprint(Job.of(job.defaulted), registry)
    tasks = []
    for task in job.defaulted["spec"]["tasks"]:
        try:
            spec = blueprint.pod(task["name"], 0)["spec"]
        except PluginError:  # told as what it is
            spec = task["template"]["spec"]
        tasks.append({**task, "template": {**task["template"], "spec": spec}})
    spec = {**job.defaulted["spec"], "tasks": tasks}
    return msgspec.structs.replace(job, defaulted={**job.defaulted, "spec": spec})


def _containers(jobs: Iterable[LoadedJob]) -> Iterator[tuple[Path, Object, LoadedJob]]:
    for job in jobs:
        for number, task in enumerate(job.defaulted["spec"]["tasks"]):
            spec = task["template"]["spec"]
            for field in ("initContainers", "containers"):
                path = ("spec", "tasks", number, "template", "spec", field)
                for position, container in enumerate(spec.get(field) or ()):
                    yield (*path, position), container, job


def refused_host_paths(jobs: Iterable[LoadedJob], allowed: Sequence[Allowed]) -> Iterator[Problem]:
    """hostPath volumes that pods would not get, with the cures."""
    for job in jobs:
        for number, task in enumerate(job.defaulted["spec"]["tasks"]):
            for position, volume in enumerate(task["template"]["spec"].get("volumes") or ()):
                if "hostPath" not in volume:
                    continue
                path = ("spec", "tasks", number, "template", "spec", "volumes", position)
                wanted = volume["hostPath"] or {}
                try:
                    check_host_path(
                        HostPath(wanted.get("path", ""), wanted.get("type") or ""), allowed
                    )
                except (VolumeRefused, UnsafePath) as error:
                    yield job.document.place(Problem(str(error), (*path, "hostPath")))


def hidden_host_lists(jobs: Iterable[LoadedJob], binds: Sequence[BindMount]) -> Iterator[Problem]:
    """A warning where ``-v`` takes the place of the svc plugin's files."""
    for bind in binds:
        if bind.target.rstrip("/") != svc.MOUNT_PATH:
            continue
        for job in jobs:
            if "svc" in (job.defaulted["spec"].get("plugins") or {}):
                yield job.document.place(
                    Problem(
                        f"-v hides {svc.MOUNT_PATH}, where the plugin svc puts the lists of hosts",
                        ("spec", "plugins", "svc"),
                        "show it at another place",
                        warning=True,
                    )
                )


def _invisible(
    container: Object, path: Path, machine: Machine, binds: Sequence[BindMount]
) -> Problem | None:
    command = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        return Problem(
            f"container {container['name']} has no command, and its image "
            f"{container.get('image', '')} is not pulled on this machine",
            path,
            "say what to run: command: [...]",
        )
    if not command[0]:
        return Problem(
            f"the command of container {container['name']} begins with an empty text",
            (*path, 0),
            "name the program to run",
        )
    volumes = [
        BindMount(_UNKNOWN, mount["mountPath"]) for mount in container.get("volumeMounts") or ()
    ]
    found = invisible(
        command,
        _environment(container, machine),
        [*volumes, *binds],
        machine,
        exists=_exists,
    )
    return Problem(str(found), path) if found else None


def _environment(container: Object, machine: Machine) -> Mapping[str, str]:
    given = next(
        (entry.get("value", "") for entry in reversed(container.get("env") or ())
         if entry["name"] == "PATH"),
        "",
    )  # fmt: skip
    return {"PATH": search_path(machine.python.executable, given)}


def _exists(path: str) -> bool:
    return path.startswith(_UNKNOWN) or os.path.exists(path)
