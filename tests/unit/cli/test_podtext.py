"""What a terminal is shown of a pod's output."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.cli.podtext import colour_of, column_width, decode, for_terminal, short_pod_name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\x1b[2Jcleared", "cleared"),
        ("\x1b[10;10Hmoved", "moved"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1bcreset", "reset"),
        ("\x1b]never ended", ""),
        ("bell\x07", "bell\\x07"),
        ("\x9b2Jeight bit", "\\x9b2Jeight bit"),
        ("\u202eright to left", "\\u202eright to left"),
        (" 10%\r 50%\r100%", "100%"),
        ("windows\r", "windows"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("中文", "中文"),
    ],
)
def test_only_text_and_colours_reach_a_terminal(text: str, shown: str) -> None:
    assert for_terminal(text) == shown


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left_but_colours(text: str) -> None:
    shown = for_terminal(text)
    without_colours = "".join(
        part.partition("m")[2] if number else part
        for number, part in enumerate(shown.split("\x1b["))
    )
    assert not any(ord(c) < 0x20 and c not in "\t\n" for c in without_colours)
    assert "\x1b" not in without_colours


def test_bytes_that_are_not_utf_8_are_shown_not_lost() -> None:
    assert decode(b"ok \xff\xfe") == "ok \\xff\\xfe"


def test_a_pod_is_shown_without_its_jobs_name() -> None:
    assert short_pod_name("tensorflow-dist-mnist", "tensorflow-dist-mnist-ps-0") == "ps-0"
    assert short_pod_name("other", "tensorflow-dist-mnist-ps-0") == "tensorflow-dist-mnist-ps-0"


def test_neighbouring_pods_have_different_and_stable_colours() -> None:
    colours = [colour_of(f"worker-{index}") for index in range(4)]
    assert len(set(colours)) == 4
    assert colours == [colour_of(f"worker-{index}") for index in range(4)]


def test_the_label_column_fits_the_longest_label_up_to_a_limit() -> None:
    assert column_width(["ps-0", "worker-10"]) == 9
    assert column_width(["x" * 200]) == 32
    assert column_width([]) == 0
