"""Tables and ages: aligned, and nothing of an object's text is obeyed."""

import pytest

from vcjob.cli.tables import age, print_table, short_duration, shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"), (0, "0s"), (45.9, "45s"), (119, "119s"), (120, "2m"), (200, "3m20s"),
        (600, "10m"), (7500, "125m"), (3 * 3600 + 300, "3h5m"), (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"), (3 * 86400, "3d"), (3 * 86400 + 7200, "3d2h"), (30 * 86400, "30d"),
    ],
)  # fmt: skip
def test_durations_as_kubectl_shows_them(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text


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
