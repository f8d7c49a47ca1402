"""``vcjob render``: every object that a Job becomes, without creating any."""

import sys

import click

from vcjob.api.kinds import PRIORITY_CLASS
from vcjob.api.problems import Problem
from vcjob.api.schema.readable import readable_part
from vcjob.api.schema.support import RECORDS
from vcjob.api.types import MalformedObject
from vcjob.cli.documents import write_json, write_yaml
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.manifests import Loaded, load
from vcjob.cli.problems import print_problems
from vcjob.core.blueprint import Blueprint
from vcjob.core.render import blueprint_to_render, rendered_objects
from vcjob.core.trial import failures_of_pods
from vcjob.plugins.registry import Registry, installed_plugins


@click.command(
    epilog="Nothing is refused that can be shown at all: problems go to standard error. The exit "
    "code is 3 if a document cannot be shown, 2 if a file cannot be read."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml",
              show_default=True, help="YAML documents, or JSON: one List.")  # fmt: skip
@click.option("--uid", default="", metavar="UID",
              help="The Job's UID. Default: derived from namespace and name.")  # fmt: skip
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
def render(files: tuple[str, ...], output: str, uid: str, show_secrets: bool) -> int:
    """Print every object that the Jobs of FILE... become.

    FILE is a YAML or JSON file, or - for standard input. The same Job gives the same output, byte
    for byte. Nothing is created.
    """
    loaded = load(files)
    blueprints, problems = _blueprints(loaded, installed_plugins(third_party=True), uid)
    print_problems(problems, err=True)
    priorities = _priorities(loaded)
    objects = (
        obj
        for blueprint in blueprints
        for obj in rendered_objects(blueprint, priorities, show_secrets=show_secrets)
    )
    stream = sys.stdout.buffer
    if output == "json":
        write_json(objects, stream)
    else:
        write_yaml(objects, stream)
    stream.flush()
    if blueprints and not any(map(_hides_document, problems)):
        return ExitCode.COMPLETED
    return ExitCode.MANIFEST_REFUSED


def _hides_document(problem: Problem) -> bool:
    """Whether a document could not be shown: its text, its kind or a type in it is wrong."""
    return not problem.warning and problem.path in ((), ("kind",), ("apiVersion",))


def _blueprints(
    loaded: Loaded, registry: Registry, uid: str
) -> tuple[list[Blueprint], list[Problem]]:
    blueprints: list[Blueprint] = []
    problems = {(one.file, one.path, one.line, one.message): one for one in loaded.problems}
    for job in loaded.jobs:
        found: tuple[Problem, ...]
        try:
            blueprint = blueprint_to_render(job.defaulted, registry, uid)
        except MalformedObject as error:
            found = (Problem(f"the Job cannot be shown: {error}"),)
        else:
            found = blueprint.problems
            if failures := failures_of_pods(blueprint):
                found += tuple(Problem(f"the Job cannot be shown: {one}") for one in failures)
            else:
                blueprints.append(blueprint)
        for problem in map(job.document.place, found):
            key = (problem.file, problem.path, problem.line, problem.message)
            problems.setdefault(key, problem)
    return blueprints, list(problems.values())


def _priorities(loaded: Loaded) -> dict[str, int]:
    """Values of the PriorityClasses that the files bring along, by name."""
    values = {}
    for other in loaded.others:
        if other.kind != PRIORITY_CLASS:
            continue
        readable = readable_part(other.object, RECORDS[PRIORITY_CLASS])
        name = (readable.get("metadata") or {}).get("name")
        if name:
            values[name] = readable.get("value") or 0
    return values
