"""Plugins: that there are such, that their arguments can be read, and what they find themselves.

Source: admission.md section 2, rules 2 and 13; docs/compatibility.md rows 3, 9 and 10.
"""

from collections.abc import Iterator
from functools import cache

import msgspec

from vcjob.api.problems import Problem
from vcjob.api.types import Job
from vcjob.core.checks.subject import Subject
from vcjob.plugins.base import PluginError
from vcjob.plugins.registry import ORDER, Registry, installed_plugins
from vcjob.plugins.selection import Selected, select

_PLUGINS = ("spec", "plugins")
_TELL = "tell whoever made the plugin"
_FROM = (
    "plugins of other packages must be installed beside vcjob (on a cluster: beside its operator "
    "and webhook)"
)


@cache
def own_plugins() -> Registry:
    """The plugins that come with vcjob."""
    return installed_plugins(third_party=False)


def check_plugins(subject: Subject, registry: Registry) -> Iterator[Problem]:
    """Everything about the Job's plugins; ``registry`` holds those that there are."""
    job = subject.job
    missing = [name for name in job.spec.plugins if name in ORDER and name not in registry.names()]
    for name in missing:
        # Admitted, as by Volcano; the manifest is right, though not for this installation.
        yield Problem(
            f"the plugin {name} is one of Volcano's, but this installation does not have it: "
            "nothing is done for it",
            (*_PLUGINS, name),
            f"there are: {', '.join(registry.names())}",
            warning=True,
        )
    selection = select(_without_plugins(job, missing), registry)
    for problem in selection.problems:
        name = str(problem.path[2]) if problem.path[:2] == _PLUGINS else ""
        is_known = name in registry.names() or name.lower() in registry.names()
        if not name or is_known or registry.withheld(name):
            yield problem
        else:
            between = " If not: " if problem.hint.endswith("?") else "; "
            hint = between.join(filter(None, (problem.hint, _FROM)))
            yield msgspec.structs.replace(problem, hint=hint)
    for one in selection.plugins:
        yield from _problems_of(one)


def _without_plugins(job: Job, names: list[str]) -> Job:
    left = {name: value for name, value in job.spec.plugins.items() if name not in names}
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, plugins=left))


def _problems_of(one: Selected) -> Iterator[Problem]:
    """What one plugin finds; a plugin that fails is itself the problem."""
    try:
        yield from one.plugin.problems(one.request)
    except PluginError as error:
        yield Problem(str(error), one.request.path, _TELL)
    except Exception as error:  # a plugin may come from anywhere
        yield Problem(
            f"the plugin {one.plugin.name} failed while it checked the Job: "
            f"{type(error).__name__}: {error}",
            one.request.path,
            _TELL,
        )
