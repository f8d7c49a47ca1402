"""``vcjob scale``: another number of pods for tasks of a Job that runs."""

import click

from vcjob.api.kinds import JOB
from vcjob.api.problems import printable
from vcjob.api.types import Job
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.selection import JobNameType, find_job
from vcjob.cli.target import Target, on_target
from vcjob.controller.cluster import Conflict
from vcjob.core.actions import FINAL
from vcjob.core.scale import InvalidScaling, overruled, parse_scalings
from vcjob.core.scale import scale as scaled

_MOST_TRIES = 5


@click.command()
@click.argument("job", type=JobNameType())
@click.argument("scalings", nargs=-1, required=True, metavar="TASK=N...")
@on_target
async def scale(target: Target, job: str, scalings: tuple[str, ...]) -> int:
    """Run N pods of TASK of JOB from now on.

    Minima (minAvailable) that could no longer be reached are lowered; what is changed is printed.
    """
    try:
        wanted = parse_scalings(scalings)
    except InvalidScaling as error:
        raise click.UsageError(str(error)) from error
    for sentence in overruled(scalings):
        click.echo(f"vcjob: {sentence}", err=True)
    for attempt in range(_MOST_TRIES):
        obj = await find_job(target, job)
        phase = Job.of(obj).status.state.phase
        if phase in FINAL:
            click.echo(f"vcjob: {job} has ended ({phase}); there is nothing to scale", err=True)
            return ExitCode.FAILED
        try:
            new = scaled(obj, wanted)
        except InvalidScaling as error:
            raise click.UsageError(str(error)) from error
        spec = {
            field: value
            for field, value in new.job["spec"].items()
            if value != obj["spec"].get(field)
        }
        if not spec:
            click.echo(f"job {job} has that many pods already")
            return ExitCode.COMPLETED
        metadata = obj["metadata"]
        try:
            await target.cluster.patch(
                JOB, metadata["namespace"], job, {"spec": spec}, uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )  # fmt: skip
        except Conflict:
            if attempt == _MOST_TRIES - 1:
                raise
            continue
        for change in new.changes:
            click.echo(f"job {job}: {printable(change)}")
        break
    return ExitCode.COMPLETED
