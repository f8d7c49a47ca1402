"""``vcjob run --detach``: Jobs go to the engine of this machine, which runs them on."""

import asyncio

import click
import msgspec

from vcjob.api.types import Object
from vcjob.cli.creating import Created, create_objects
from vcjob.cli.engine_start import start_detached
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.manifests import Loaded
from vcjob.cli.preparation import cleared, obstacles
from vcjob.cli.problems import print_problems
from vcjob.cli.target import TargetOptions, with_target
from vcjob.local.machine_view import MachineView
from vcjob.local.options import EngineOptions
from vcjob.local.sandbox.python import PythonNotFound, find_python
from vcjob.local.service.home import EngineHome
from vcjob.local.service.serving import ServiceOptions


def hand_over(loaded: Loaded, options: EngineOptions, *, strict: bool) -> int:
    """Create the objects in the engine, started with ``options`` if none runs; the exit code.

    What speaks against the Jobs is told and refused as ``vcjob run`` does, with what pods of that
    engine get of this machine in view. Raises UsageError.
    """
    home = EngineHome.of_user()
    running = bool(home.running())
    if running:
        options = _settled(home, options)
    try:
        view = MachineView.of(options)
    except PythonNotFound as error:
        raise click.UsageError(str(error)) from error
    if not cleared(obstacles(loaded, view), strict=strict):
        return ExitCode.MANIFEST_REFUSED
    if not running:
        code = start_detached(ServiceOptions(engine=options))
        if code:
            return code
    created: Created = asyncio.run(with_target(create_objects, TargetOptions(), loaded=loaded))
    for job in created.jobs:
        _tell(job["metadata"])
    print_problems(created.refusals, err=True)
    if created.refusals:
        return ExitCode.MANIFEST_REFUSED
    return ExitCode.FAILED if created.present else ExitCode.COMPLETED


def _settled(home: EngineHome, options: EngineOptions) -> EngineOptions:
    """The options of the engine that runs; raises UsageError where ``options`` say otherwise."""
    record = home.read_record()
    settled = record.options if record else EngineOptions()
    if options.python:
        options = msgspec.structs.replace(options, python=find_python(options.python))
    for option in EngineOptions.__struct_fields__:
        asked = getattr(options, option)
        if asked not in (getattr(EngineOptions(), option), getattr(settled, option)):
            raise click.UsageError(
                "an engine runs already, and -v, --allow-host-path, --python and --map-users are "
                "settled when it starts: vcjob engine stop, then vcjob engine start --detach with "
                "them"
            )
    return settled


def _tell(metadata: Object) -> None:
    name, namespace = metadata["name"], metadata["namespace"]
    where = "" if namespace == "default" else f" -n {namespace}"
    click.echo(name)
    click.echo(
        f"vcjob: {name} is with the engine; follow it with vcjob logs -f {name}{where}, "
        f"see it with vcjob describe {name}{where}",
        err=True,
    )
