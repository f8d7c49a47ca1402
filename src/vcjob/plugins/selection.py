"""The plugins of one Job, each with its request, in the order in which they work."""

from collections.abc import Iterator, Mapping

import msgspec

from vcjob.api.problems import Path, Problem
from vcjob.api.types import Job
from vcjob.plugins.arguments import MOST_PORT, parse_arguments
from vcjob.plugins.base import KeyPair, Plugin, PluginError, Request
from vcjob.plugins.hosts import JobHosts
from vcjob.plugins.registry import Registry, in_order
from vcjob.plugins.roles import argument_path


class Selected(msgspec.Struct, frozen=True):
    """A plugin that a Job uses, and what it is asked about."""

    plugin: Plugin
    request: Request


class Selection(msgspec.Struct, frozen=True):
    """The plugins of a Job. ``problems`` are those of finding them and of their arguments only."""

    plugins: tuple[Selected, ...]
    hosts: JobHosts
    problems: tuple[Problem, ...]


def select(
    job: Job, registry: Registry, key_pairs: Mapping[str, KeyPair] | None = None
) -> Selection:
    """Find the plugins of ``job`` and read their arguments; never raises.

    A plugin that cannot be found is left out, with a problem.
    """
    hosts = JobHosts(job)
    selected: list[Selected] = []
    problems: list[Problem] = []
    for name in in_order(job.spec.plugins):
        path: Path = ("spec", "plugins", name)
        try:
            plugin = registry.find(name)
        except PluginError as error:
            message, _, hint = str(error).partition("; ")
            problems.append(Problem(message, path, hint))
            continue
        problems += [
            Problem(sentence, path, warning=True) for of, sentence in registry.unused if of == name
        ]
        parsed = parse_arguments(plugin.arguments, job.spec.plugins[name])
        if parsed.error:
            where = (*path, parsed.position)
            problems.append(Problem(f"plugin {name}: {parsed.error}", where, parsed.hint))
        elif parsed.ignored and plugin.arguments:
            problems.append(
                Problem(
                    f"plugin {name}: arguments are read up to here only; this one and those "
                    "behind it have no effect",
                    (*path, parsed.position),
                    "write each as --name=value",
                    warning=True,
                )
            )
        request = Request(job, path, parsed.values, hosts, key_pairs or {})
        if not parsed.error:
            problems += _port_problems(plugin, request)
        problems += _shared_port_problems(plugin, request, selected)
        selected.append(Selected(plugin, request))
    for one in selected:
        try:
            hosts.substitute(one.plugin.addresses(one.request))
        except PluginError as error:
            problems.append(Problem(str(error), one.request.path))
        problems += _missing_requirements(one.plugin, job)
    return Selection(tuple(selected), hosts, tuple(problems))


def _ports_of(plugin: Plugin, request: Request) -> dict[str, int]:
    return {one.name: request.number(one.name) for one in plugin.arguments if one.port}


def _port_problems(plugin: Plugin, request: Request) -> Iterator[Problem]:
    for name, port in _ports_of(plugin, request).items():
        if not 1 <= port <= MOST_PORT:
            hint = f"write a number from 1 to {MOST_PORT}"
            yield Problem(f"--{name}={port} is no port", argument_path(request, name), hint)


def _shared_port_problems(
    plugin: Plugin, request: Request, before: list[Selected]
) -> Iterator[Problem]:
    """Ports that two plugins take; one that needs the other may mean that one's server."""
    for other in before:
        if other.plugin.name in plugin.requires or plugin.name in other.plugin.requires:
            continue
        taken = {port: name for name, port in _ports_of(other.plugin, other.request).items()}
        for name, port in _ports_of(plugin, request).items():
            if port in taken:
                yield Problem(
                    f"--{name} of the plugin {plugin.name} and --{taken[port]} of "
                    f"{other.plugin.name} are both {port}; in a pod only one program can listen "
                    "at a port",
                    argument_path(request, name),
                    "give each a port of its own",
                    warning=True,
                )


def _missing_requirements(plugin: Plugin, job: Job) -> Iterator[Problem]:
    for name in plugin.requires:
        if name not in job.spec.plugins:
            yield Problem(
                f"the plugin {plugin.name} works only with the plugin {name}",
                ("spec", "plugins", plugin.name),
                f"add {name}: []",
                warning=True,
            )
