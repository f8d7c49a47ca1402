"""What plugins of frameworks have in common: roles that tasks play, and names they derive."""

from collections.abc import Callable, Collection, Iterator, Sequence

from vcjob.api.problems import Path, Problem
from vcjob.api.suggestions import closest, suggest
from vcjob.api.validation import LABEL_LENGTH, dns_1123_label
from vcjob.plugins.base import Request


def role_problems(
    request: Request, optional: Sequence[str], told: Collection[str] = ()
) -> Iterator[Problem]:
    """Roles that name a task that is not there; ``optional`` roles may keep such a default.

    ``request.arguments`` of these names are task names. A default that no task has is told where a
    task without a role has a name that is much alike. Of roles in ``told`` the plugin tells itself
    that there is no task.
    """
    tasks = [task.name for task in request.job.spec.tasks]
    idle = [task for task in tasks if task not in {request.text(role) for role in optional}]
    first_of: dict[str, str] = {}
    for role in optional:
        task = request.text(role)
        if task not in tasks and role in told:
            continue
        if task not in tasks and task != role:
            yield Problem(
                f'--{role} names "{task}", but no task is called so',
                argument_path(request, role),
                suggest(task, tasks),
                warning=True,
            )
        elif task not in tasks:
            if alike := closest(task, idle):
                yield Problem(
                    f'no task is called "{task}", so that task "{alike}" plays no role',
                    argument_path(request, role),
                    f'call it "{task}", or write --{role}={alike}',
                    warning=True,
                )
        elif first_of.setdefault(task, role) != role:
            yield Problem(
                f'--{role} and --{first_of[task]} name the same task "{task}"',
                argument_path(request, role),
                "one task plays one role",
                warning=True,
            )


def naming_hint(role: str, name: str, tasks: Collection[str]) -> str:
    """How a task gets a role that none plays: ``name`` is what the task should be called."""
    return f"name the task so, or give its name: --{role}={closest(name, tasks) or 'my-task'}"


def quoted(request: Request, roles: Sequence[str]) -> str:
    """The task names of roles, as a sentence lists them."""
    return ", ".join(f'"{request.text(role)}"' for role in roles)


def made_name_problems(
    request: Request, what: str, name_of: Callable[[str], str]
) -> Iterator[Problem]:
    """The name that a plugin derives from the Job's must be a DNS label.

    ``what`` the plugin makes, as sentences call it; ``name_of`` gives its name.
    """
    job, plugin = request.job.metadata.name, request.path[-1]
    name = name_of(job)
    if job and (wrong := dns_1123_label(name)):
        most = LABEL_LENGTH - len(name_of(""))
        hint = f"shorten the Job's name to {most} characters" if len(name) > LABEL_LENGTH else ""
        message = f"the plugin {plugin} makes {what} named {name}, whose name must {wrong}"
        yield Problem(message, ("metadata", "name"), hint)


def argument_path(request: Request, name: str) -> Path:
    """Where an argument stands in the Job (its last occurrence), else where the plugin stands."""
    tokens = request.job.spec.plugins.get(str(request.path[-1]), ())
    for position in reversed(range(len(tokens))):
        if tokens[position].lstrip("-").partition("=")[0] == name:
            return (*request.path, position)
    return request.path
