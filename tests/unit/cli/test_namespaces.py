"""Options that name namespaces."""

import click
import pytest

from vcjob.cli.namespaces import namespaces_option

_PARAMETER = click.Option(["--namespaces"])


def _named(value: str) -> tuple[str, ...]:
    return namespaces_option(click.Context(click.Command("operator")), _PARAMETER, value)


@pytest.mark.parametrize("value", [",", ",,", " ", " , "])
def test_a_list_without_a_name_does_not_mean_all_namespaces(value: str) -> None:
    with pytest.raises(click.BadParameter, match="names no namespace"):
        _named(value)


def test_names_are_taken_once_and_nothing_given_means_all() -> None:
    assert _named("a, b,a,") == ("a", "b")
    assert _named("") == ()
