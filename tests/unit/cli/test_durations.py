"""Durations on the command line: units as Go writes them or plain seconds, never below zero."""

import click
import pytest

from vcjob.cli.durations import DurationType


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("0s", 0), ("90", 90), ("+5", 5), ("1.5", 1.5), (".5", 0.5), ("90s", 90),
     ("10m", 600), ("1h30m", 5400), ("250ms", 0.25)],
)  # fmt: skip
def test_units_and_plain_seconds_are_read(text: str, seconds: float) -> None:
    assert DurationType().convert(text, None, None) == seconds


@pytest.mark.parametrize(
    "text", ["", "x", "5x", "1.2.3", "nan", "inf", "-inf", "1e400", "5 s", "9" * 30, "1000000000h"]
)
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="for example 90s, 10m or 1h30m"):
        DurationType().convert(text, None, None)


@pytest.mark.parametrize("text", ["-1", "-0.5", "-1s", "-1h"])
def test_a_time_before_now_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"'{text}' is less than nothing"):
        DurationType().convert(text, None, None)
