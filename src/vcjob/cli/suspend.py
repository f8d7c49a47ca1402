"""``vcjob suspend`` and ``vcjob resume``: stop a Job's pods for a while."""

from collections.abc import Callable

import click

from vcjob.api.kinds import COMMAND
from vcjob.api.types import Job
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.orders import order
from vcjob.cli.selection import JobNameType, find_job
from vcjob.cli.target import Target, on_target
from vcjob.core.actions import FINAL, Action, Phase

_SUSPENDED = (Phase.ABORTING, Phase.ABORTED)


@click.command()
@click.argument("jobs", nargs=-1, required=True, type=JobNameType(), metavar="JOB...")
@on_target
async def suspend(target: Target, jobs: tuple[str, ...]) -> int:
    """Suspend the Jobs: their pods are stopped, the Jobs stay (phase Aborted) to be resumed."""
    return await _ask(target, jobs, Action.ABORT_JOB, "suspend", _cannot_suspend)


@click.command()
@click.argument("jobs", nargs=-1, required=True, type=JobNameType(), metavar="JOB...")
@on_target
async def resume(target: Target, jobs: tuple[str, ...]) -> int:
    """Resume suspended Jobs: all of their pods are made anew."""
    return await _ask(target, jobs, Action.RESUME_JOB, "resume", _cannot_resume)


async def _ask(
    target: Target,
    names: tuple[str, ...],
    action: Action,
    verb: str,
    why_not: Callable[[Job], str],
) -> int:
    found = [Job.of(await find_job(target, name)) for name in names]
    code = ExitCode.COMPLETED
    for job in found:
        name = job.metadata.name
        if reason := why_not(job):
            click.echo(f"vcjob: {name} {reason}", err=True)
            code = ExitCode.FAILED
            continue
        await target.cluster.create(COMMAND, order(job, action, f"vcjob {verb}"))
        click.echo(f"{verb} of job {name} asked for")
    return code


def _cannot_suspend(job: Job) -> str:
    phase = job.status.state.phase
    if phase in _SUSPENDED:
        return f"is suspended already ({phase})"
    return f"has ended ({phase}); there is nothing to suspend" if phase in FINAL else ""


def _cannot_resume(job: Job) -> str:
    phase = job.status.state.phase
    if phase in FINAL:
        return f"has ended ({phase}) and cannot be resumed; create it anew"
    return "" if phase in _SUSPENDED else f"is not suspended ({phase or 'New'})"
