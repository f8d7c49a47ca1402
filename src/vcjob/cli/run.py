"""``vcjob run``: options and manifests in, a followed run on this machine out.

This file turns arguments into what the engine wants and refuses what cannot work before anything
starts; ``cli/follow.py`` follows the Jobs to their end.
"""

import os
from pathlib import Path

import click

from vcjob.cli.durations import DurationType
from vcjob.cli.exit_codes import ExitCode


class _Bind(click.ParamType[tuple[Path, str, bool]]):
    """``SRC:DST`` or ``SRC:DST:ro``: a directory or file of this machine shown inside pods."""

    name = "SRC:DST[:ro]"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Path, str, bool]:
        source, colon, rest = value.partition(":")
        target, _, mode = rest.partition(":")
        if not source or not colon or not target.startswith("/") or mode not in ("", "ro", "rw"):
            self.fail(
                f"{value!r} is not SRC:DST or SRC:DST:ro with an absolute DST, "
                "for example ./data:/data",
                param,
                ctx,
            )
        if target.strip("/").partition("/")[0] in ("", "proc", "sys"):
            self.fail(
                f"{target!r} belongs to the container's own system; choose another place, "
                "for example /data",
                param,
                ctx,
            )
        path = Path(source).expanduser()
        if not path.exists():
            self.fail(f"{source!r} does not exist on this machine", param, ctx)
        return path.resolve(), target, mode == "ro"


@click.command(
    epilog="The exit code is 0 if every Job Completed, 1 Failed, 5 Terminated, 6 Aborted (of "
    "several Jobs the worst), 3 if a manifest is refused, 4 if this machine cannot run pods, "
    "130 if interrupted."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-v", "--volume", "binds", type=_Bind(), multiple=True,
              help="Show a file or directory of this machine inside every pod.")  # fmt: skip
@click.option("--allow-host-path", "host_paths", multiple=True, metavar="DIR",
              type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
              help="Let hostPath volumes reach below DIR.")  # fmt: skip
@click.option("--python", metavar="PATH", type=click.Path(exists=True, path_type=Path),
              help="The Python that pods see as python (an interpreter or an environment's "
              "directory). Default: the active environment, else vcjob's own.")  # fmt: skip
@click.option(
    "--map-users",
    is_flag=True,
    help="As root: give pods unprivileged user numbers instead of root's own.",
)
@click.option("--scale", "scales", multiple=True, metavar="TASK=N",
              help="Run N replicas of TASK instead of what the manifest says.")  # fmt: skip
@click.option("--timeout", type=DurationType(), help="Terminate the Jobs after this long.")
@click.option("--keep", is_flag=True, help="Keep the pods' files and objects for inspection.")
@click.option("--events", is_flag=True, help="Show every Event, not only warnings.")
@click.option("--strict", is_flag=True, help="Refuse manifests that draw warnings.")
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
) -> int:
    """Run the Jobs of FILE... on this machine and follow them to their end.

    FILE is a manifest, or - for standard input. Other objects in it (ConfigMaps, Secrets, Queues,
    …) are made first.
    """
    if map_users and os.geteuid() != 0:
        raise click.UsageError(
            "--map-users is for root; started by another user, pods have none of root's numbers"
        )
    # Imported here: --help must not pay for them.
    from vcjob.cli.manifests import load
    from vcjob.cli.preparation import apply_scalings
    from vcjob.cli.problems import print_problems

    scaled = apply_scalings(load(files), scales)
    loaded = scaled.loaded
    for change in scaled.changes:
        click.echo(f"vcjob: {change}", err=True)
    print_problems(loaded.problems, err=True)
    if loaded.problems if strict else loaded.errors:
        return _refused()
    if not loaded.jobs:
        raise click.UsageError("there is no Job in the files")

    from vcjob.local.engine import EngineOptions, LocalEngine
    from vcjob.local.node.probe import MachineCannot
    from vcjob.local.run_directory import StateUnusable
    from vcjob.local.sandbox.python import PythonNotFound

    options = EngineOptions(
        binds=binds,
        python=str(python or ""),
        host_paths=host_paths,
        keep=keep,
        map_users=map_users,
    )
    try:
        engine = LocalEngine(options)
        # The node process is forked before the rest is imported, and sets itself up meanwhile.
        engine.prepare()

        from vcjob.cli.session import Settings, run_session

        return run_session(engine, loaded, Settings(events, timeout, strict))
    except PythonNotFound as error:
        raise click.UsageError(str(error)) from error
    except (MachineCannot, StateUnusable) as error:
        click.echo(f"vcjob: this machine cannot run pods: {error}", err=True)
        return ExitCode.MACHINE_CANNOT


def _refused() -> int:
    click.echo("vcjob: refused; nothing was started", err=True)
    return ExitCode.MANIFEST_REFUSED
