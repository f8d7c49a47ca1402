"""``vcjob completion SHELL``: the script that makes a shell complete vcjob's commands."""

import click
from click.shell_completion import get_completion_class


@click.command(
    epilog='For bash, add to ~/.bashrc: eval "$(vcjob completion bash)"; for zsh, to ~/.zshrc: '
    'eval "$(vcjob completion zsh)"; for fish, to ~/.config/fish/config.fish: '
    "vcjob completion fish | source"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL."""
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"click {click.__version__} cannot complete for {shell}")
    click.echo(completion_class(ctx.find_root().command, {}, "vcjob", "_VCJOB_COMPLETE").source())
