"""Options that name namespaces."""

import click
import pytest
from click.testing import CliRunner

from vcjob.cli.ls import ls
from vcjob.cli.namespaces import namespaces_option
from vcjob.cli.operator import operator
from vcjob.cli.webhook import webhook

_PARAMETER = click.Option(["--namespaces"])


def _named(value: str | None) -> tuple[str, ...]:
    return namespaces_option(click.Context(click.Command("operator")), _PARAMETER, value)


@pytest.mark.parametrize("value", ["", ",", ",,", " ", " , "])
def test_a_list_without_a_name_does_not_mean_all_namespaces(value: str) -> None:
    with pytest.raises(click.BadParameter, match="names no namespace"):
        _named(value)


def test_names_are_taken_once_and_nothing_given_means_all() -> None:
    assert _named("a, b,a,") == ("a", "b")
    assert _named(None) == ()


@pytest.mark.parametrize(
    ("command", "option"),
    [(operator, "--lease-namespace"), (webhook, "--namespace"), (ls, "--namespace")],
)
@pytest.mark.parametrize("value", ["Bad_", "a/b", "a,b", ","])
def test_what_is_no_namespace_is_refused_before_anything_starts(
    command: click.Command, option: str, value: str
) -> None:
    done = CliRunner().invoke(command, [option, value])
    assert done.exit_code == 2
    assert "Invalid value for" in done.output
    assert f"'{option}'" in done.output
