"""``vcjob submit``: Jobs to an engine or a cluster that runs them, and back to the prompt."""

import shlex
from collections.abc import Iterator

import click
import msgspec

from vcjob.api.problems import Problem
from vcjob.cli.creating import Created, create_objects
from vcjob.cli.durations import DurationType
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.manifests import Loaded, load
from vcjob.cli.output import output_option, print_objects
from vcjob.cli.preparation import (
    apply_scalings,
    cleared,
    jobs_without_pods,
    obstacles,
    plugin_problems,
)
from vcjob.cli.problems import print_problems
from vcjob.cli.target import Target, called, on_target
from vcjob.cli.wait import wait_for_end
from vcjob.local.machine_view import MachineView
from vcjob.local.options import EngineOptions
from vcjob.local.service.home import EngineHome
from vcjob.plugins.registry import installed_plugins


@click.command(
    epilog="The exit code is 0 if every Job was created, 3 if a manifest or the server refuses "
    "one, 1 if one is there already. With --wait it is that of vcjob run: 0 Completed, 1 Failed, "
    "5 Terminated, 6 Aborted (of several Jobs the worst)."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--scale", "scales", multiple=True, metavar="TASK=N",
              help="Run N replicas of TASK instead of what the manifest says. Of several for the "
              "same task the last one counts.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Refuse manifests that draw warnings.")
@click.option("--wait", "waits", is_flag=True, help="Wait until every Job has ended.")
@click.option("--timeout", type=DurationType(), help="Wait no longer than this; the Jobs go on.")
@output_option(("name", "json", "yaml"))
@on_target
async def submit(
    target: Target,
    files: tuple[str, ...],
    scales: tuple[str, ...],
    strict: bool,
    waits: bool,
    timeout: float | None,
    output: str | None,
) -> int:
    """Create the Jobs of FILE... on the engine of this machine, or with --context on a cluster.

    They are checked before as vcjob run does; with the engine, what its pods would not find on this
    machine is told too. FILE is a manifest, or - for standard input. Other objects in it
    (ConfigMaps, Secrets, Queues, …) are made first.
    """
    if timeout is not None and not waits:
        raise click.UsageError("--timeout needs --wait")
    scaled = apply_scalings(load(files), scales)
    loaded = scaled.loaded
    for change in scaled.changes:
        click.echo(f"{called()}: {change}", err=True)
    problems = [*loaded.problems]
    if not loaded.errors:
        problems += _against(target, loaded)
    if not cleared(problems, strict=strict):
        return ExitCode.MANIFEST_REFUSED
    if not loaded.jobs:
        raise click.UsageError("there is no Job in the files")
    created = await create_objects(target, loaded)
    _tell(target, created, output)
    print_problems(created.refusals, err=True)
    if created.refusals:
        return ExitCode.MANIFEST_REFUSED
    if created.present:
        return ExitCode.FAILED
    return await wait_for_end(target, created.jobs, timeout) if waits else ExitCode.COMPLETED


def _against(target: Target, loaded: Loaded) -> Iterator[Problem]:
    """What only shows with the place in view where the Jobs are to run."""
    if target.local:
        record = EngineHome.of_user().read_record()
        yield from obstacles(loaded, MachineView.of(record.options if record else EngineOptions()))
        return
    for problem in plugin_problems(loaded.jobs, installed_plugins(third_party=True)):
        hint = "the cluster's operator and webhook may know it"
        yield msgspec.structs.replace(problem, warning=True, hint=hint)
    yield from jobs_without_pods(loaded.jobs)


def _tell(target: Target, created: Created, output: str | None) -> None:
    """Print what was made: objects for programs, or names, and how to go on for people."""
    if output:
        jobs = list(created.jobs)
        if jobs or output != "name":
            print_objects(jobs, output, single=len(jobs) == 1)
        return
    for job in created.jobs:
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        click.echo(name)
        where = _options(target, namespace)
        click.echo(
            f"{called()}: follow {name} with {called()} logs -f {name}{where}, "
            f"see it with {called()} describe {name}{where}",
            err=True,
        )


def _options(target: Target, namespace: str) -> str:
    """The options by which the same place is meant again."""
    given = click.get_current_context().params
    options = [(f"--{name}", given[name]) for name in ("context", "kubeconfig") if given[name]]
    if given["namespace"] or namespace != target.namespace:
        options.append(("-n", namespace))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in options)
