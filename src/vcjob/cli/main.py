"""The ``vcjob`` command: a group whose sub-commands are imported only when they are asked for.

Importing every command would cost each ``vcjob --help`` and every shell completion a few hundred
milliseconds; the help line of each command therefore stands in the table below.
"""

import errno
import importlib
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import click

from vcjob import __version__
from vcjob.api.errors import VcjobError
from vcjob.cli.exit_codes import ExitCode

# section of the help: {name: (module, attribute, help line)}
_SECTIONS = {
    "Manifests": {
        "run": ("vcjob.cli.run", "run", "Run Jobs on this machine and follow them to their end."),
        "submit": ("vcjob.cli.submit", "submit", "Create Jobs on the engine or a cluster."),
        "validate": ("vcjob.cli.validate", "validate", "Report every problem of manifests."),
        "render": ("vcjob.cli.render", "render", "Print every object that a Job becomes."),
        "plugins": ("vcjob.cli.plugins", "plugins", "List the plugins that Jobs can use."),
    },
    "Look at Jobs (of this machine's engine, or with --context of a cluster)": {
        "ls": ("vcjob.cli.ls", "ls", "List Jobs, or the pods of one."),
        "get": ("vcjob.cli.get", "get", "Show objects, as kubectl does."),
        "describe": ("vcjob.cli.describe", "describe", "Tell the state of a Job or pod, and why."),
        "logs": ("vcjob.cli.logs", "logs", "Print the output of pods."),
        "events": ("vcjob.cli.events", "events", "Show the Events of Jobs and pods."),
        "wait": ("vcjob.cli.wait", "wait", "Wait until Jobs have ended, or are in a phase."),
    },
    "Change Jobs": {
        "suspend": ("vcjob.cli.suspend", "suspend", "Stop the pods of Jobs; the Jobs stay."),
        "resume": ("vcjob.cli.suspend", "resume", "Make the pods of suspended Jobs anew."),
        "scale": ("vcjob.cli.scale", "scale", "Run more or fewer pods of a task."),
        "delete": ("vcjob.cli.delete", "delete", "Delete Jobs and all that belongs to them."),
    },
    "Inside pods": {
        "exec": ("vcjob.cli.execute", "execute", "Run a program in a pod."),
        "cp": ("vcjob.cli.cp", "cp", "Copy files from or to a pod."),
        "port-forward": ("vcjob.cli.port_forward", "port_forward", "Reach ports of a pod here."),
    },
    "On a cluster": {
        "operator": ("vcjob.cli.operator", "operator", "Look after the Jobs of a cluster."),
        "webhook": ("vcjob.cli.webhook", "webhook", "Complete and check Jobs as they come in."),
        "manifests": ("vcjob.cli.install", "manifests", "Print what to install there."),
    },
    "Others": {
        "engine": ("vcjob.cli.engine", "engine", "Serve this machine to Kubernetes clients."),
        "completion": ("vcjob.cli.completion", "completion", "Print a shell's completion script."),
    },
}  # fmt: skip
_COMMANDS = {name: row for section in _SECTIONS.values() for name, row in section.items()}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not ctx.resilient_parsing:
            from vcjob.api.suggestions import closest

            best = closest(name, _COMMANDS)
            ctx.fail(f'there is no command "{name}"' + (f"; did you mean {best}?" if best else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, _, line) in section.items()])


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 Completed, 1 Failed, 2 wrong usage, 3 manifest refused, 4 this machine "
    "cannot run pods or no engine runs, 5 Terminated, 6 Aborted, 130 interrupted.",
)
@click.version_option(__version__, "--version", prog_name="vcjob", message="%(prog)s %(version)s")
def cli() -> None:
    """Run Volcano Jobs, whose pods find each other by name, on this machine."""


Handler = Callable[[int, FrameType | None], Any] | int | None
"""What ``signal.signal`` takes and gives."""

_DISK_FAILURES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main(name: str = "vcjob", on_interrupt: Handler = signal.default_int_handler) -> NoReturn:
    """Entry point: errors that a user can act on end in one sentence, never in a traceback.

    ``name`` is what the user typed to call us, ``on_interrupt`` what SIGINT is to do from now on.
    """
    try:
        signal.signal(signal.SIGINT, on_interrupt)
        _open_closed_streams()
        code = cli.main(prog_name=name, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else ExitCode.COMPLETED)
    except click.exceptions.Abort:
        sys.exit(ExitCode.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.WRONG_USAGE)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _close_broken_output()
        sys.exit(ExitCode.FAILED)
    except VcjobError as error:
        click.echo(f"{name}: {error}", err=True)
        sys.exit(getattr(error, "exit_code", ExitCode.FAILED))
    except OSError as error:
        # A write to an open file names none; what names one was not foreseen and is our fault.
        if error.errno not in _DISK_FAILURES or error.filename is not None:
            raise
        _close_broken_output()
        click.echo(f"{name}: output cannot be written: {error.strerror}", err=True)
        sys.exit(ExitCode.FAILED)


def _open_closed_streams() -> None:
    """Let what the caller closed (``>&-``) be /dev/null.

    Otherwise Python has no such stream, and the next file that is opened takes its number.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            import os

            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:  # something was opened since the start
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            stream = os.fdopen(number, mode, encoding="utf-8")
            setattr(sys, name, stream)


def _close_broken_output() -> None:
    """Stop Python from complaining at exit that the reader of our output (``head``) is gone."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
