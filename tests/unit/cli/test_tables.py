"""Tables and ages: aligned, and nothing of an object's text is obeyed."""

import pytest

from vcjob.cli.tables import age, print_table, shown


def test_an_age_is_the_time_since() -> None:
    assert age("2023-11-14T22:13:20Z", 1_700_000_045.0) == "45s"
    assert age("") == age("yesterday") == "<unknown>"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "<none>"), (True, "true"), (0, "0"), ("a\x1b[2Jb\nc", "a\\x1b[2Jb\\x0ac")],
)
def test_cells(value: object, text: str) -> None:
    assert shown(value) == text


def test_columns_are_as_wide_as_their_longest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "N"), [("a", 1), ("longer-name", 22)])
    assert capsys.readouterr().out == "NAME          N\na             1\nlonger-name   22\n"
