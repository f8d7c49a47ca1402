from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.duration import InvalidDuration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("90s", 90.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("-2m", -120.0),
        ("+5s", 5.0),
        (".5s", 0.5),
        ("1m1s1ms1us", 61.001001),
        ("3µs", 0.000003),
        ("1500ns", 0.000001),
    ],
)
def test_go_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["", "-", "5", "1d", "1 h", "h", "1h 2m", "one", "1h2", "٣s", "999999999999h", "1s" * 1000],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidDuration):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.000007, "7µs"),
        (0.02, "20ms"),
        (0.0015, "1.5ms"),
        (1.5, "1.5s"),
        (60, "1m0s"),
        (5400, "1h30m0s"),
        (-61, "-1m1s"),
    ],
)
def test_durations_are_written_as_go_does(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


@given(st.timedeltas(min_value=timedelta(days=-100_000), max_value=timedelta(days=100_000)))
def test_what_is_written_is_read_as_the_same(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
