import pytest

from vcjob.api.problems import Problem, printable
from vcjob.cli.problems import count_of, problem_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 中 😀", "plain é 中 😀"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\r", r"a\x0ab\x09c\x0d"),
        ("\u202e\u2028", r"\u202e\u2028"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_only_printable_characters_are_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


PROBLEM = Problem("is wrong", ("spec", "tasks", 0), "do right", file="f.yaml", line=3, column=5)


def test_a_problem_with_place_path_and_hint() -> None:
    assert list(problem_lines(PROBLEM, colour=False)) == [
        "f.yaml:3:5: error: is wrong",
        "    at spec.tasks[0]",
        "    hint: do right",
    ]


def test_a_problem_without_a_place() -> None:
    lines = list(problem_lines(Problem("is odd", warning=True), colour=False))
    assert lines == ["warning: is odd"]


def test_colours_mark_place_and_severity_only() -> None:
    first, *rest = problem_lines(PROBLEM, colour=True)
    assert first.endswith(": is wrong")
    assert "\x1b[31m" in first
    assert "\x1b" not in "".join(rest)


@pytest.mark.parametrize(
    ("warnings", "text"),
    [([], ""), ([False], "1 error"), ([True, False, False, True], "2 errors, 2 warnings")],
)
def test_problems_are_counted(warnings: list[bool], text: str) -> None:
    assert count_of(Problem("x", warning=warning) for warning in warnings) == text
