"""``vcjob describe``: a Job or a pod, and why it is where it is."""

from collections.abc import Iterator
from typing import Any

import click

from vcjob.api.kinds import JOB, POD
from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Job, Object, Policy, Task
from vcjob.cli.events import events_of, print_events
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.get import chosen
from vcjob.cli.ls import pod_status, readiness, restarts
from vcjob.cli.podtext import short_pod_name
from vcjob.cli.selection import (
    Reference,
    ReferenceType,
    find_job,
    find_pods,
    one_reference,
    pods_of,
)
from vcjob.cli.tables import NONE, age, print_table, shown
from vcjob.cli.target import Target, on_target

_MOST_PODS = 20
_TASK_COLUMNS = ("TASK", "REPLICAS", "MIN", "PENDING", "RUNNING", "SUCCEEDED", "FAILED",
                 "DEPENDS ON")  # fmt: skip
_WIDTH = 14
_MOST_OF_COMMAND = 60
_APPLIED_MANIFEST = "kubectl.kubernetes.io/last-applied-configuration"


@click.command()
@click.argument("references", nargs=-1, required=True, type=ReferenceType(),
                metavar="JOB[/POD]")  # fmt: skip
@on_target
async def describe(target: Target, references: tuple[Reference, ...]) -> int:
    """Tell about JOB, or about one pod of it: JOB/worker-0."""
    reference = _without_kind(references)
    if not reference.part:
        await _describe_job(target, await find_job(target, reference.job))
        return ExitCode.COMPLETED
    _, pods = await find_pods(target, reference)
    for number, pod in enumerate(pods):
        if number:
            click.echo()
        _describe_pod(reference.job, pod)
        await _events(target, [pod])
    return ExitCode.COMPLETED


def _without_kind(references: tuple[Reference, ...]) -> Reference:
    """Take ``job NAME`` and ``job/NAME`` as kubectl does."""
    kinds, names = chosen(tuple(map(str, references)))
    if not kinds or (len(references) == 1 and not names):
        return one_reference(references)
    if kinds == [POD]:
        raise click.UsageError("a pod is named by its Job: JOB/worker-0")
    if kinds != [JOB]:
        raise click.UsageError("Jobs and their pods are described; others show: vcjob get -o yaml")
    return Reference(names[0]) if len(names) == 1 else one_reference(references)


async def _describe_job(target: Target, obj: Object) -> None:
    job = Job.of(obj)
    pods = await pods_of(target, obj)
    state = job.status.state
    _fields(_job_fields(job, obj))
    _heading("Tasks")
    print_table(_TASK_COLUMNS, [list(_task_row(job, task)) for task in job.spec.tasks])
    if pods:
        _heading("Pods")
        rows = [
            (short_pod_name(job.metadata.name, pod["metadata"]["name"]), readiness(pod),
             pod_status(pod), restarts(pod), (pod.get("status") or {}).get("podIP"),
             _why(pod))
            for pod in pods[:_MOST_PODS]
        ]  # fmt: skip
        print_table(("POD", "READY", "STATUS", "RESTARTS", "IP", "WHY"), rows)
        if len(pods) > _MOST_PODS:
            click.echo(f"… and {len(pods) - _MOST_PODS} more: vcjob ls {job.metadata.name}")
    if job.status.conditions:
        _heading("Conditions")
        rows_of_phases = [
            (one.get("status"), age(str(one.get("lastTransitionTime", ""))))
            for one in job.status.conditions
        ]
        print_table(("PHASE", "SINCE"), rows_of_phases)
    await _events(target, [obj, *pods])
    if not state.phase:
        click.echo("\nNo controller has looked at this Job yet.")


def _job_fields(job: Job, obj: Object) -> Iterator[tuple[str, Any]]:
    metadata, spec, state = job.metadata, job.spec, job.status.state
    since = f" for {age(state.last_transition_time)}" if state.last_transition_time else ""
    yield "Name", metadata.name
    yield "Namespace", metadata.namespace
    deletion = ", being deleted" if obj["metadata"].get("deletionTimestamp") else ""
    yield "Phase", f"{state.phase or 'New'}{since}{deletion}"
    if state.message or state.reason:
        yield "Why", state.message or state.reason
    yield "Age", age(metadata.creation_timestamp)
    yield "Queue", spec.queue or DEFAULT_QUEUE
    least = spec.min_available
    yield "Min available", "1 pod" if least == 1 else f"{least} pods"
    yield "Plugins", ", ".join(_plugins(job)) or NONE
    yield "Policies", "; ".join(_policies(job)) or NONE
    yield "Retries", f"{job.status.retry_count} of {spec.max_retry}"
    if spec.ttl_seconds_after_finished is not None:
        yield "Deleted after", f"{spec.ttl_seconds_after_finished} s"
    yield from _map("Labels", obj["metadata"].get("labels"))
    yield from _map("Annotations", _told_annotations(obj["metadata"]))


def _plugins(job: Job) -> Iterator[str]:
    for name, arguments in sorted(job.spec.plugins.items()):
        yield f"{name} ({' '.join(arguments)})" if arguments else name


def _policies(job: Job) -> Iterator[str]:
    """Policies in the order in which they are asked: a task's come before the Job's."""
    for task in job.spec.tasks:
        yield from (f"{_policy(policy)} (task {task.name})" for policy in task.policies)
    yield from map(_policy, job.spec.policies)


def _policy(policy: Policy) -> str:
    events = [*([policy.event] if policy.event else []), *policy.events]
    if policy.exit_code is not None:
        events.append(f"exit code {policy.exit_code}")
    after = f" after {policy.timeout}" if policy.timeout else ""
    return f"{', '.join(events)} → {policy.action}{after}"


def _task_row(job: Job, task: Task) -> Iterator[Any]:
    counts = job.status.task_status_count.get(task.name, {}).get("phase", {})
    yield from (task.name, task.replicas)
    yield task.replicas if task.min_available is None else task.min_available
    for phase in ("Pending", "Running", "Succeeded", "Failed"):
        yield counts.get(phase, 0)
    yield ", ".join(task.depends_on.name) if task.depends_on else ""


def _host_name(own: str, spec: Object) -> str:
    return f"{own}.{spec['subdomain']}" if spec.get("subdomain") else own


def _describe_pod(job: str, pod: Object) -> None:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    fields = [
        ("Pod", short_pod_name(job, metadata["name"])),
        ("Name", metadata["name"]),
        ("Namespace", metadata.get("namespace", "")),
        ("Status", pod_status(pod)),
        *([("Why", _why(pod))] if _why(pod) else []),
        ("IP", status.get("podIP")),
        ("Host name", _host_name(spec.get("hostname") or metadata["name"], spec)),
        ("Node", spec.get("nodeName")),
        ("Age", age(metadata.get("creationTimestamp", ""))),
        *_map("Labels", metadata.get("labels")),
        *_map("Annotations", _told_annotations(metadata)),
    ]
    _fields(iter(fields))
    _heading("Containers")
    print_table(("CONTAINER", "STATE", "READY", "RESTARTS", "COMMAND", "WHY"),
                list(_container_rows(spec, status)))  # fmt: skip
    if conditions := status.get("conditions"):
        _heading("Conditions")
        rows = [
            (one.get("type"), one.get("status"), one.get("reason"), one.get("message", ""))
            for one in conditions
        ]
        print_table(("TYPE", "STATUS", "REASON", "MESSAGE"), rows)


def _container_rows(spec: Object, status: Object) -> Iterator[tuple[Any, ...]]:
    for part, told in (("initContainers", "initContainerStatuses"),
                       ("containers", "containerStatuses")):  # fmt: skip
        states = {one["name"]: one for one in status.get(told) or ()}
        for container in spec.get(part) or ():
            one = states.get(container["name"], {})
            word, why = container_state(one)
            command = [*(container.get("command") or ()), *(container.get("args") or ())]
            yield (container["name"], word, one.get("ready", False), one.get("restartCount", 0),
                   _beginning(" ".join(map(str, command))) or NONE, why)  # fmt: skip


def _beginning(command: str) -> str:
    """A command in a cell: what is cut off is marked."""
    if len(command) <= _MOST_OF_COMMAND:
        return command
    return f"{command[: _MOST_OF_COMMAND - 1]}…"


def container_state(status: Object) -> tuple[str, str]:
    """A container's state in a word, and why it is in it."""
    state = status.get("state") or {}
    if "running" in state:
        return "Running", ""
    if ended := state.get("terminated"):
        reason = ended.get("reason") or "Ended"
        return f"{reason} (exit code {ended.get('exitCode')})", ended.get("message", "")
    waiting = state.get("waiting") or {}
    return waiting.get("reason") or "Waiting", waiting.get("message", "")


def _why(pod: Object) -> str:
    """Why a pod is in its state, where somebody has said it."""
    status = pod.get("status") or {}
    if status.get("message"):
        return str(status["message"])
    for one in status.get("containerStatuses") or ():
        word, why = container_state(one)
        if why or word.endswith(")"):
            return f"{one['name']}: {why or word}"
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return ""


def _fields(fields: Iterator[tuple[str, Any]]) -> None:
    for name, value in fields:
        click.echo(f"{f'{name}:' if name else '':<{_WIDTH}} {shown(value)}")


def _map(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    for key, value in sorted((values or {}).items()):
        yield name, f"{key}={value}"
        name = ""


def _told_annotations(metadata: Object) -> dict[str, str]:
    """Annotations without the copy of the whole manifest that ``kubectl apply`` keeps there."""
    annotations = metadata.get("annotations") or {}
    return {key: value for key, value in annotations.items() if key != _APPLIED_MANIFEST}


def _heading(text: str) -> None:
    click.echo(f"\n{text}:")


async def _events(target: Target, objects: list[Object]) -> None:
    _heading("Events")
    if found := await events_of(target, objects):
        print_events(found)
    else:
        click.echo(NONE)
