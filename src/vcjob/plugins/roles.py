"""What plugins of frameworks have in common: roles that tasks play, and ports."""

from collections.abc import Iterator, Sequence

from vcjob.api.problems import Path, Problem
from vcjob.api.suggestions import suggest
from vcjob.plugins.base import Request

MOST_PORT = 65535


def port_problems(request: Request, *arguments: str) -> Iterator[Problem]:
    """A port is a number from 1 to 65535."""
    for name in arguments:
        port = request.number(name)
        if not 1 <= port <= MOST_PORT:
            hint = f"write a number from 1 to {MOST_PORT}"
            yield Problem(f"--{name}={port} is no port", argument_path(request, name), hint)


def role_problems(request: Request, optional: Sequence[str]) -> Iterator[Problem]:
    """Roles that name a task that is not there; ``optional`` roles may keep such a default.

    ``request.arguments`` of these names are task names.
    """
    tasks = [task.name for task in request.job.spec.tasks]
    first_of: dict[str, str] = {}
    for role in optional:
        task = request.text(role)
        if task not in tasks and task != role:
            yield Problem(
                f'--{role} names "{task}", but no task is called so',
                argument_path(request, role),
                suggest(task, tasks),
                warning=True,
            )
        elif first_of.setdefault(task, role) != role:
            yield Problem(
                f'--{role} and --{first_of[task]} name the same task "{task}"',
                argument_path(request, role),
                "one task plays one role",
                warning=True,
            )


def argument_path(request: Request, name: str) -> Path:
    """Where an argument stands in the Job (its last occurrence), else where the plugin stands."""
    tokens = request.job.spec.plugins.get(str(request.path[-1]), ())
    for position in reversed(range(len(tokens))):
        if tokens[position].lstrip("-").partition("=")[0] == name:
            return (*request.path, position)
    return request.path
