"""What only shows when a Job's objects are made: a plugin that fails at it.

Checks ask plugins what is wrong with a Job. Whether what a plugin makes can be used is seen by
making it, which costs more than a check may cost.
"""

from collections.abc import Iterator

from vcjob.api.problems import Problem, errors
from vcjob.api.types import MalformedObject, Object
from vcjob.core.blueprint import Blueprint
from vcjob.core.render import blueprint_to_render
from vcjob.plugins.base import PluginError
from vcjob.plugins.registry import Registry

_PLUGINS = ("spec", "plugins")


def try_out(job: Object, registry: Registry) -> Iterator[Problem]:
    """Errors of making the Job's supporting objects and the first pod of each task.

    ``job`` has its defaults and passed all checks.
    """
    try:
        blueprint = blueprint_to_render(job, registry)
    except MalformedObject as error:
        yield Problem(str(error))
        return
    there = registry.names()
    for problem in errors(list(blueprint.problems)):
        if problem.path[:2] != _PLUGINS or problem.path[2] in there:
            yield problem
    for failure in failures_of_pods(blueprint):
        yield Problem(failure, _PLUGINS)


def failures_of_pods(blueprint: Blueprint) -> list[str]:
    """Why plugins cannot make pods: a sentence each. The first pod of each task is tried."""
    failures: dict[str, None] = {}
    for task in blueprint.job.spec.tasks:
        try:
            blueprint.pod(task.name, 0)
        except PluginError as error:
            failures[str(error)] = None
    return list(failures)
