"""``vcjob validate``: every problem of manifests at once, before anything is created."""

import click
import msgspec

from vcjob.api.problems import printable
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.manifests import Loaded, load
from vcjob.cli.problems import count_of, print_problems, problem_object

_LISTED_JOBS = 5


@click.command(
    epilog="The exit code is 0 if the manifests are right, 3 if there is an error (with --strict "
    "also if there is a warning), 2 if a file cannot be read."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="Lines for people, or JSON for programs.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
def validate(files: tuple[str, ...], output: str, strict: bool) -> int:
    """Report every problem of the manifests FILE... at once.

    FILE is a YAML or JSON file, or - for standard input. Nothing is created and no cluster is
    asked, so whether queues and priority classes exist is not known.
    """
    loaded = load(files, together=False)
    refused = bool(loaded.problems if strict else loaded.errors)
    if output == "json":
        _print_json(loaded, refused)
    else:
        print_problems(loaded.problems, err=False)
        click.echo(_summary(loaded, refused, strict=strict))
    return ExitCode.MANIFEST_REFUSED if refused else ExitCode.COMPLETED


def _print_json(loaded: Loaded, refused: bool) -> None:
    report = {
        "valid": not refused,
        "jobs": len(loaded.jobs),
        "problems": [problem_object(problem) for problem in loaded.problems],
    }
    click.echo(msgspec.json.format(msgspec.json.encode(report)))


def _summary(loaded: Loaded, refused: bool, *, strict: bool) -> str:
    jobs = len(loaded.jobs)
    found = count_of(loaded.problems)
    verdict = "refused" if refused else "valid"
    subject = f"{jobs} Job{'s' if jobs != 1 else ''}"
    if jobs == 0:
        subject = f"{len(loaded.files)} file{'s' if len(loaded.files) != 1 else ''}"
    summary = f"{subject}: {verdict}{f' ({found})' if found else ''}"
    guilty = _refused_jobs(loaded, strict=strict)
    if 0 < len(guilty) < jobs:
        shown = ", ".join(guilty[:_LISTED_JOBS]) + (", …" if len(guilty) > _LISTED_JOBS else "")
        summary += (
            f"; {len(guilty)} of the Jobs {'is' if len(guilty) == 1 else 'are'} wrong: {shown}"
        )
    return summary


def _refused_jobs(loaded: Loaded, *, strict: bool) -> list[str]:
    """The Jobs that have problems which refuse, by file where there are several."""
    several = len(loaded.files) > 1
    found = []
    for job in loaded.jobs:
        if problems := [one for one in job.problems if strict or not one.warning]:
            first = problems[0]
            name = printable(first.job or f"that of line {first.line}")
            found.append(f"{name} in {printable(first.file)}" if several else name)
    return found
