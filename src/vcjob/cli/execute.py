"""``vcjob exec``: a program in the container of a pod."""

import contextlib
import sys

import click

from vcjob.cli.selection import Reference, ReferenceType, find_pod
from vcjob.cli.target import Target, on_target


class _Execute(click.Command):
    """Takes options up to ``--``, as kubectl does; without that, up to JOB/POD."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args and self._is_pod(ctx, args[: args.index("--")]):
            ctx.allow_interspersed_args = True
        return super().parse_args(ctx, args)

    def _is_pod(self, ctx: click.Context, args: list[str]) -> bool:
        """Whether these words are options and a pod; else the program's arguments hold a ``--``."""
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args, parser.ignore_unknown_options = True, False
        try:
            values, _, _ = parser.parse_args(list(args))
        except click.UsageError:
            return False
        return not isinstance(values["command"], tuple) or not values["command"]


@click.command(
    "exec",
    cls=_Execute,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="The exit code is the program's. Options of exec stand before --, or without that "
    "before JOB/POD.",
)
@click.option("-i", "--stdin", "interactive", is_flag=True, help="Pass standard input on.")
@click.option("-t", "--tty", "terminal", is_flag=True, help="Give the program a terminal.")
@click.option("-c", "--container", default="", metavar="NAME",
              help="The container. Default: the pod's first.")  # fmt: skip
@click.argument("reference", type=ReferenceType(), metavar="JOB/POD")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED,
                metavar="COMMAND [ARGUMENT...]")  # fmt: skip
@on_target
async def execute(
    target: Target,
    interactive: bool,
    terminal: bool,
    container: str,
    reference: Reference,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND in a pod of a Job, for example: vcjob exec -it mnist/worker-0 -- bash."""
    from vcjob.cli.streams import SafeOutput, raw_terminal, standard_input, terminal_sizes
    from vcjob.kubernetes.remote import STDERR, RemoteOptions, run_remotely

    if command[0] == "--":  # the parser leaves it where options end early
        command = command[1:]
    if not command:
        raise click.UsageError("there is no command behind --")
    if command[0].startswith("-"):
        raise click.UsageError(
            f"{command[0]} is no program; options of exec stand before JOB/POD, or before --"
        )
    pod = await find_pod(target, reference)
    if terminal and not sys.stdin.isatty():
        click.echo("vcjob: standard input is no terminal; going on without -t", err=True)
        terminal = False
    output = SafeOutput(err=False, raw=terminal)
    errors = SafeOutput(err=True, raw=terminal)

    async def on_output(channel: int, content: bytes) -> None:
        (errors if channel == STDERR else output).write(content)

    with raw_terminal() if terminal and interactive else contextlib.nullcontext():
        return await run_remotely(
            target.cluster.connection,
            pod["metadata"]["namespace"],
            pod["metadata"]["name"],
            RemoteOptions(container or first_container(pod), command, terminal),
            on_output,
            stdin=standard_input() if interactive else None,
            sizes=terminal_sizes() if terminal else None,
        )


def first_container(pod: dict[str, object]) -> str:
    """The container that is meant where none is named: the annotated one, else the first."""
    metadata, spec = pod["metadata"], pod["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    annotations = metadata.get("annotations") or {}
    names = [str(container["name"]) for container in spec["containers"]]
    default = annotations.get("kubectl.kubernetes.io/default-container")
    return str(default) if default in names else names[0]
