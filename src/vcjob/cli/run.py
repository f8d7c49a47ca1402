"""``vcjob run``: options and manifests in, a followed run on this machine out.

This file turns arguments into what the engine wants and refuses what cannot work before anything
starts; ``cli/follow.py`` follows the Jobs to their end.
"""

from pathlib import Path

import click
import msgspec

from vcjob.cli.durations import DurationType
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.pod_options import engine_options, pod_options


@click.command(
    epilog="The exit code is 0 if every Job Completed, 1 Failed, 5 Terminated, 6 Aborted (of "
    "several Jobs the worst), 3 if a manifest is refused, 4 if this machine cannot run pods, "
    "130 if interrupted."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@pod_options
@click.option("--scale", "scales", multiple=True, metavar="TASK=N",
              help="Run N replicas of TASK instead of what the manifest says. Of several for the "
              "same task the last one counts.")  # fmt: skip
@click.option("--timeout", type=DurationType(), help="Terminate the Jobs after this long.")
@click.option("--keep", is_flag=True, help="Keep the files of pods until the next run.")
@click.option("--events", is_flag=True, help="Show every Event, not only warnings.")
@click.option("--strict", is_flag=True, help="Refuse manifests that draw warnings.")
@click.option("--detach", is_flag=True,
              help="Hand the Jobs to the engine (vcjob engine), starting it when needed, and "
              "return.")  # fmt: skip
def run(
    files: tuple[str, ...],
    binds: tuple[tuple[Path, str, bool], ...],
    host_paths: tuple[Path, ...],
    python: Path | None,
    map_users: bool,
    scales: tuple[str, ...],
    timeout: float | None,
    keep: bool,
    events: bool,
    strict: bool,
    detach: bool,
) -> int:
    """Run the Jobs of FILE... on this machine and follow them to their end.

    FILE is a manifest, or - for standard input. Other objects in it (ConfigMaps, Secrets, Queues,
    …) are made first.
    """
    options = engine_options(binds, host_paths, python, map_users)
    if detach and (timeout is not None or keep or events):
        raise click.UsageError("--timeout, --keep and --events are for Jobs that are followed here")
    if timeout == 0:
        raise click.UsageError("--timeout 0 would end the Jobs at once; without it there is none")
    # Imported here: --help must not pay for them.
    from vcjob.cli.manifests import load
    from vcjob.cli.preparation import apply_scalings, cleared

    scaled = apply_scalings(load(files), scales)
    loaded = scaled.loaded
    for change in scaled.changes:
        click.echo(f"vcjob: {change}", err=True)
    if not cleared(loaded.problems, strict=strict):
        return ExitCode.MANIFEST_REFUSED
    if not loaded.jobs:
        raise click.UsageError("there is no Job in the files")

    if detach:
        from vcjob.cli.handing_over import hand_over

        return hand_over(loaded, options, strict=strict)

    from vcjob.local.engine import LocalEngine
    from vcjob.local.node.probe import MachineCannot
    from vcjob.local.run_directory import StateUnusable
    from vcjob.local.sandbox.python import PythonNotFound

    try:
        engine = LocalEngine(msgspec.structs.replace(options, keep=keep))
        # The node process is forked before the rest is imported, and sets itself up meanwhile.
        engine.prepare()

        from vcjob.cli.session import Settings, run_session

        return run_session(engine, loaded, Settings(events, timeout, strict))
    except PythonNotFound as error:
        raise click.UsageError(str(error)) from error
    except (MachineCannot, StateUnusable) as error:
        click.echo(f"vcjob: this machine cannot run pods: {error}", err=True)
        return ExitCode.MACHINE_CANNOT
