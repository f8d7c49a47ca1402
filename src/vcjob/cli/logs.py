"""``vcjob logs``: what the pods of a Job print, each line under its pod's label."""

import contextlib

import click

from vcjob.cli.durations import DurationType
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.selection import Reference, ReferenceType, one_reference
from vcjob.cli.target import Target, on_target


@click.command(
    epilog="The output of one pod comes as it is; of several pods, each line stands behind the "
    "pod's name. With --follow the command ends when the Job (or the pod) has ended."
)
@click.argument("references", nargs=-1, required=True, type=ReferenceType(),
                metavar="JOB[/POD]")  # fmt: skip
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until the end.")
@click.option("--tail", type=click.IntRange(min=-1), default=-1, metavar="N",
              help="Only the last N lines of each container.")  # fmt: skip
@click.option("--since", type=DurationType(), help="Only lines younger than this.")
@click.option("-p", "--previous", is_flag=True,
              help="The output of the containers before they were restarted.")  # fmt: skip
@click.option("--timestamps", is_flag=True, help="Put the time before each line.")
@click.option("-c", "--container", default="", metavar="NAME",
              help="Only this container. Default: all.")  # fmt: skip
@click.option("--prefix/--no-prefix", default=None,
              help="Label the lines. Default: where there are several pods.")  # fmt: skip
@on_target
async def logs(
    target: Target,
    references: tuple[Reference, ...],
    follow: bool,
    tail: int,
    since: float | None,
    previous: bool,
    timestamps: bool,
    container: str,
    prefix: bool | None,
) -> int:
    """Print the output of the pods of JOB, of JOB/TASK, or of one pod: JOB/worker-0."""
    from vcjob.cli.log_reading import LogReader
    from vcjob.kubernetes.logs import LogOptions

    if follow and previous:
        raise click.UsageError("--follow and --previous do not go together")
    reference = one_reference(references)
    options = LogOptions(
        container=container,
        follow=follow,
        tail=None if tail < 0 else tail,
        since_seconds=None if since is None else max(int(since), 1),
        previous=previous,
        timestamps=timestamps,
    )
    with contextlib.ExitStack() as stack:
        reader = LogReader(target, reference, options, stack, labelled=prefix)
        failed = await (reader.follow() if follow else reader.read())
    return ExitCode.FAILED if failed else ExitCode.COMPLETED
