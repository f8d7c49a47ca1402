"""docs/operator.md names every option of the commands that it is about, and no others."""

import re
from pathlib import Path

import click
import pytest

from vcjob.cli.main import cli

TEXT = (Path(__file__).parents[4] / "docs" / "operator.md").read_text()


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {
        next(one for one in (*option.opts, *option.secondary_opts) if one.startswith("--"))
        for option in command.params
        if isinstance(option, click.Option)
    }


@pytest.mark.parametrize("name", ["manifests", "operator", "webhook"])
def test_every_option_has_a_row(name: str) -> None:
    _, heading, table = TEXT.partition(f"| option of `vcjob {name}` |")
    assert heading
    rows = re.findall(r"^\| (`--.*?) \|", table.partition("\n\n")[0], re.M)
    named = {option for row in rows for option in re.findall(r"`(--[\w-]+)`", row)}
    assert {one for one in named if not one.startswith("--no-leader")} == options_of(name)
