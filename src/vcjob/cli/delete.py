"""``vcjob delete``: Jobs, their pods and everything that belongs to them."""

import asyncio

import click

from vcjob.api.kinds import JOB
from vcjob.api.types import Object
from vcjob.cli.durations import DurationType
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.following import changes
from vcjob.cli.selection import JobNameType, NothingSelected, find_job
from vcjob.cli.target import Target, on_target
from vcjob.controller.cluster import EventType, NotFound

_PROPAGATION = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


@click.command()
@click.argument("jobs", nargs=-1, type=JobNameType(), metavar="JOB...")
@click.option("-l", "--selector", default="", help="The Jobs whose labels match.")
@click.option("--all", "every", is_flag=True, help="All Jobs of the namespace.")
@click.option("--wait", is_flag=False, flag_value="true", default="true", type=bool,
              metavar="true|false", show_default=True,
              help="Wait until the Jobs and their pods are gone.")  # fmt: skip
@click.option("--timeout", type=DurationType(), help="Wait no longer than this.")
@click.option("--cascade", type=click.Choice(list(_PROPAGATION)), default="foreground",
              show_default=True,
              help="Whether pods go after the Job, before it, or stay.")  # fmt: skip
@click.option("--ignore-not-found", is_flag=True, help="A Job that is not there is no error.")
@on_target
async def delete(
    target: Target,
    jobs: tuple[str, ...],
    selector: str,
    every: bool,
    wait: bool,
    timeout: float | None,
    cascade: str,
    ignore_not_found: bool,
) -> int:
    """Delete the Jobs, with their pods and all that was made for them."""
    if bool(jobs) + bool(selector) + every != 1:
        raise click.UsageError("name Jobs, or choose them with --selector or --all")
    if jobs:
        found = [job for name in jobs if (job := await _find(target, name, ignore_not_found))]
    else:
        listed = await target.cluster.list(JOB, target.namespace, selector=selector)
        found = listed.items
    if not found:
        click.echo("vcjob: there are no such Jobs", err=True)
        return ExitCode.COMPLETED
    for job in found:
        metadata = job["metadata"]
        try:
            await target.cluster.delete(
                JOB, metadata["namespace"], metadata["name"], uid=metadata["uid"],
                propagation=_PROPAGATION[cascade],
            )  # fmt: skip
        except NotFound:
            continue  # somebody else was faster
        if not wait:
            click.echo(f"job {metadata['name']} is being deleted")
    if not wait:
        return ExitCode.COMPLETED
    try:
        async with asyncio.timeout(timeout):
            await until_gone(target, found)
    except TimeoutError:
        click.echo("vcjob: the time is over, but not all Jobs are gone yet", err=True)
        return ExitCode.FAILED
    return ExitCode.COMPLETED


async def until_gone(target: Target, jobs: list[Object]) -> None:
    """Return when none of the Jobs is there any more; each is told as it goes."""
    left = {job["metadata"]["uid"]: job for job in jobs}
    async for kind, job in changes(target.cluster, JOB, target.namespace, known=left):
        uid = job["metadata"]["uid"]
        if kind is EventType.DELETED and uid in left:
            del left[uid]
            click.echo(f"job {job['metadata']['name']} deleted")
        if not left:
            return


async def _find(target: Target, name: str, ignore_not_found: bool) -> Object | None:
    try:
        return await find_job(target, name)
    except NothingSelected:
        if ignore_not_found:
            return None
        raise
