"""How problems of manifests are shown: lines for people, objects for programs."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

from vcjob.api.problems import Problem, format_path, printable


def problem_lines(problem: Problem, *, colour: bool) -> Iterator[str]:
    """``file:line:column: error: message``, then the path, then what would be right."""
    place = printable(problem.file)
    if problem.line:
        place += f":{problem.line}:{problem.column}"
    word, shade = ("warning", "yellow") if problem.warning else ("error", "red")
    if colour:
        place, word = click.style(place, bold=True), click.style(word, fg=shade, bold=True)
    yield f"{place}{': ' if place else ''}{word}: {printable(problem.message)}"
    if problem.path:
        yield f"    at {printable(format_path(problem.path))}"
    if problem.hint:
        yield f"    hint: {printable(problem.hint)}"


def print_problems(problems: Iterable[Problem], *, err: bool) -> None:
    """Show problems on standard output, or with ``err`` on standard error."""
    colour = (sys.stderr if err else sys.stdout).isatty()
    for problem in problems:
        for line in problem_lines(problem, colour=colour):
            click.echo(line, err=err)


def problem_object(problem: Problem) -> dict[str, Any]:
    """A problem for programs: every field is always there; line 0 means that it is not known."""
    return {
        "severity": "warning" if problem.warning else "error",
        "message": problem.message,
        "hint": problem.hint,
        "file": problem.file,
        "document": problem.document,
        "line": problem.line,
        "column": problem.column,
        "path": format_path(problem.path),
        "job": problem.job,
    }


def count_of(problems: Iterable[Problem]) -> str:
    """``2 errors, 1 warning``; an empty text if there are none."""
    listed = list(problems)
    warnings = sum(1 for problem in listed if problem.warning)
    counts = (("error", len(listed) - warnings), ("warning", warnings))
    return ", ".join(f"{n} {word}{'s' if n != 1 else ''}" for word, n in counts if n)
