"""``vcjob ls``: Jobs, or the pods of one Job."""

from typing import Any

import click

from vcjob.api.kinds import JOB
from vcjob.api.types import Job, MalformedObject, Object
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.output import output_option, print_objects
from vcjob.cli.podtext import short_pod_name
from vcjob.cli.selection import Reference, ReferenceType, find_pods
from vcjob.cli.tables import age, print_table
from vcjob.cli.target import Target, on_target
from vcjob.core.actions import Phase

_JOB_COLUMNS = ("NAME", "PHASE", "REPLICAS", "MIN", "PENDING", "RUNNING", "SUCCEEDED", "FAILED",
                "RETRIES", "AGE")  # fmt: skip
_JOB_COLUMNS_WIDE = ("QUEUE", "UNKNOWN", "TERMINATING", "WHY")
_POD_COLUMNS = ("POD", "READY", "STATUS", "RESTARTS", "AGE")
_POD_COLUMNS_WIDE = ("IP", "NODE", "WHY")

_PHASES = ("New", *(phase.value for phase in Phase if phase.value))


@click.command()
@click.argument("job", required=False, type=ReferenceType())
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of every namespace.")
@click.option("-l", "--selector", default="", help="Only Jobs whose labels match, such as a=b.")
@click.option("-q", "--queue", default="", help="Only Jobs of this queue.")
@click.option("--phase", type=click.Choice(_PHASES, case_sensitive=False), metavar="PHASE",
              help="Only Jobs in this phase, such as Running.")  # fmt: skip
@output_option()
@on_target
async def ls(
    target: Target,
    job: Reference | None,
    all_namespaces: bool,
    selector: str,
    queue: str,
    phase: str | None,
    output: str | None,
) -> int:
    """List the Jobs, or the pods of JOB (JOB/TASK: of one task)."""
    if job is not None:
        if all_namespaces or selector or queue or phase:
            raise click.UsageError("-A, -l, -q and --phase choose Jobs, not pods of one")
        _, pods = await find_pods(target, job)
        _print(pods, output, "pods", lambda wide: _print_pods(job.job, pods, wide))
        return ExitCode.COMPLETED
    namespace = None if all_namespaces else target.namespace
    listed = await target.cluster.list(JOB, namespace, selector=selector)
    jobs = [obj for obj in listed.items if _is_chosen(obj, queue, phase)]
    where = "" if all_namespaces else f' in namespace "{target.namespace}"'
    what = "such Jobs" if selector or queue or phase else "Jobs"
    _print(jobs, output, f"{what}{where}", lambda wide: _print_jobs(jobs, wide, all_namespaces))
    return ExitCode.COMPLETED


def _print(objects: list[Object], output: str | None, what: str, table: Any) -> None:
    if output in (None, "wide"):
        if objects:
            table(output == "wide")
        else:
            click.echo(f"vcjob: there are no {what}", err=True)
    else:
        print_objects(objects, output or "", single=False)


def _is_chosen(obj: Object, queue: str, phase: str | None) -> bool:
    job = _view(obj)
    return (not queue or job.spec.queue == queue) and (
        not phase or (job.status.state.phase or "New").lower() == phase.lower()
    )


def _view(obj: Object) -> Job:
    """The Job as far as it can be read: one of a wrong shape must not hide the others."""
    try:
        return Job.of(obj)
    except MalformedObject:
        return Job.of({"metadata": obj["metadata"]})


def _print_jobs(jobs: list[Object], wide: bool, all_namespaces: bool) -> None:
    heading = (*_JOB_COLUMNS, *(_JOB_COLUMNS_WIDE if wide else ()))
    rows = []
    for obj in jobs:
        job = _view(obj)
        status = job.status
        row: list[Any] = [
            job.metadata.name,
            status.state.phase or "New",
            sum(task.replicas for task in job.spec.tasks),
            job.spec.min_available,
            status.pending,
            status.running,
            status.succeeded,
            status.failed,
            status.retry_count,
            age(job.metadata.creation_timestamp),
        ]
        if wide:
            row += [job.spec.queue, status.unknown, status.terminating, status.state.message]
        rows.append([job.metadata.namespace, *row] if all_namespaces else row)
    print_table(("NAMESPACE", *heading) if all_namespaces else heading, rows)


def _print_pods(job: str, pods: list[Object], wide: bool) -> None:
    rows = []
    for pod in pods:
        metadata, status = pod["metadata"], pod.get("status") or {}
        row = [
            short_pod_name(job, metadata["name"]),
            readiness(pod),
            pod_status(pod),
            restarts(pod),
            age(metadata.get("creationTimestamp", "")),
        ]
        if wide:
            row += [
                status.get("podIP"),
                (pod.get("spec") or {}).get("nodeName"),
                status.get("message", ""),
            ]
        rows.append(row)
    print_table((*_POD_COLUMNS, *(_POD_COLUMNS_WIDE if wide else ())), rows)


def readiness(pod: Object) -> str:
    """``1/2``: how many of a pod's containers are ready."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    containers = (pod.get("spec") or {}).get("containers") or ()
    return f"{sum(bool(one.get('ready')) for one in statuses)}/{len(containers)}"


def restarts(pod: Object) -> int:
    """How often a pod's containers were started again."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(one.get("restartCount", 0) for one in statuses)


def pod_status(pod: Object) -> str:
    """A pod's state in a word, as kubectl shows it: its phase, or what its containers say."""
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if status.get("reason"):
        return str(status["reason"])
    word = status.get("phase", "Unknown")
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        for part in ("waiting", "terminated"):
            told = state.get(part) or {}
            reason = told.get("reason")
            if not reason and told.get("exitCode"):
                reason = f"ExitCode:{told['exitCode']}"
            if reason and reason != "Completed":
                word = reason
    gated = (pod.get("spec") or {}).get("schedulingGates")
    return "SchedulingGated" if gated and word == "Pending" else str(word)
