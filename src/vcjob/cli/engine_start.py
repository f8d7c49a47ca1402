"""Starting the engine as a service, here or in a process that stays."""

import click

from vcjob.api.errors import VcjobError
from vcjob.cli.exit_codes import ExitCode
from vcjob.local.node.probe import MachineCannot
from vcjob.local.run_directory import StateUnusable
from vcjob.local.sandbox.python import PythonNotFound
from vcjob.local.service.detaching import Tell, Told, detach
from vcjob.local.service.home import AlreadyRunning, EngineHome, EngineRecord
from vcjob.local.service.serving import ServiceOptions, run_service


def start_here(options: ServiceOptions) -> int:
    """Serve in this process until it is told to stop."""
    try:
        return run_service(EngineHome.of_user(), options, lambda record: _show(_ready(record)))
    except VcjobError as error:
        told = _failed(error)
        _show(told.text)
        return told.code


def start_detached(options: ServiceOptions) -> int:
    """Start a process that serves, and return when it does."""
    home = EngineHome.of_user()
    if pid := home.running():  # told at once, without a process that finds out
        raise AlreadyRunning(pid)
    home.make()

    def work(tell: Tell) -> int:
        try:
            return run_service(
                home, options, lambda record: tell(Told(ExitCode.COMPLETED, _ready(record)))
            )
        except VcjobError as error:
            tell(told := _failed(error))
            return told.code

    told = detach(work, home.log)
    _show(told.text)
    return told.code


def _show(text: str) -> None:
    click.echo(f"vcjob: {text}", err=True)


def _ready(record: EngineRecord) -> str:
    return f"the engine serves at {record.address}; kubectl --kubeconfig {record.kubeconfig} ..."


def _failed(error: VcjobError) -> Told:
    if isinstance(error, MachineCannot | StateUnusable):
        return Told(ExitCode.MACHINE_CANNOT, f"this machine cannot run the engine: {error}")
    if isinstance(error, PythonNotFound):
        return Told(ExitCode.WRONG_USAGE, str(error))
    return Told(ExitCode.FAILED, str(error))
