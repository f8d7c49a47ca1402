"""Which plugins there are, and the order in which they work.

Volcano runs plugins in random order; ours is fixed (plugins.md section 1). Plugins of other
packages come by entry points of the group ``vcjob.plugins``. A plugin is imported when a Job
first asks for it, so that a broken package matters only to Jobs that use it.
"""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

import msgspec

from vcjob import __version__
from vcjob.api.suggestions import closest, suggest
from vcjob.plugins.base import Plugin, PluginError
from vcjob.plugins.foreign import guarded

GROUP = "vcjob.plugins"
ORDER = ("env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank")
"""Volcano's plugins, in the order in which they add to a pod; others follow by name."""


class Source(msgspec.Struct, frozen=True):
    """Where a plugin comes from. ``load`` may raise PluginError."""

    name: str
    package: str
    version: str
    load: Callable[[], Plugin]


class Registry:
    """Plugins by name, each loaded once, when it is first asked for.

    ``unused`` tells of plugins that other packages bring under a name that cannot be theirs: a
    sentence each, by that name. ``withheld`` says why a plugin that is installed under a name is
    not used, or nothing; it is asked only about names that are missed.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        unused: Iterable[tuple[str, str]] = (),
        withheld: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._sources = {source.name: source for source in sources}
        self._loaded: dict[str, Plugin] = {}
        self.withheld = withheld
        self.unused = tuple(unused)

    def names(self) -> list[str]:
        """All plugins that there are, in the order in which they work."""
        return in_order(self._sources)

    def source(self, name: str) -> Source:
        """Where the plugin of this name comes from; raises PluginError if there is none."""
        if name not in self._sources:
            if why := self.withheld(name):
                raise PluginError(why)
            hint = suggest(name, self._sources)
            if not closest(name, self._sources):
                hint += "; to have another, install its package and start vcjob anew"
            raise PluginError(f'there is no plugin "{name}"; {hint.removeprefix("; ")}')
        return self._sources[name]

    def find(self, name: str) -> Plugin:
        """The plugin of this name; raises PluginError if there is none or it cannot be loaded."""
        if name not in self._loaded:
            self._loaded[name] = self.source(name).load()
        return self._loaded[name]

    def requires(self, name: str) -> tuple[str, ...]:
        """The plugins that the one of this name needs beside it; none if it cannot be had."""
        try:
            return self.find(name).requires
        except PluginError:
            return ()  # whoever uses it is told when it is looked for


def in_order(names: Iterable[str]) -> list[str]:
    """Plugin names in the order in which they work."""
    position = {name: place for place, name in enumerate(ORDER)}
    return sorted(names, key=lambda name: (position.get(name, len(ORDER)), name))


def registry_of(plugins: Iterable[Plugin]) -> Registry:
    """A registry of plugins that are at hand."""
    return Registry(_own(plugin.name, partial(_itself, plugin)) for plugin in plugins)


def installed_plugins(*, third_party: bool) -> Registry:
    """Our own plugins and, with ``third_party``, those that other packages bring.

    Plugins are code of whoever made them, and run with all rights of vcjob. Another package cannot
    take the place of one of ours.
    """
    sources = [
        _own(name, partial(_load_own, name))
        for name in ORDER
        if importlib.util.find_spec(f"{__package__}.{name}")
    ]
    if not third_party:
        not_allowed = cache(_not_allowed)  # looked for once, and only when a plugin is missed
        return Registry(sources, withheld=lambda name: not_allowed().get(name, ""))
    entries = sorted(_foreign_entries(), key=lambda entry: (entry.name, _package(entry)))
    unused = [
        (entry.name, f"{_blame(entry)} is not used: a plugin of vcjob has that name")
        for entry in entries
        if entry.name in ORDER
    ]
    by_name: dict[str, list[importlib.metadata.EntryPoint]] = {}
    for entry in entries:
        if entry.name not in ORDER:
            by_name.setdefault(entry.name, []).append(entry)
    sources += [_foreign(name, same) for name, same in by_name.items()]
    return Registry(sources, unused)


def _foreign_entries() -> Iterator[importlib.metadata.EntryPoint]:
    for entry in importlib.metadata.entry_points(group=GROUP):
        if _package(entry) != "vcjob":
            yield entry


def _not_allowed() -> dict[str, str]:
    """Why plugins of other packages are not used, by name. Their code is not run for that."""
    return {
        entry.name: f"{_blame(entry)} is not used; plugins of other packages have to be allowed by "
        "whoever runs the operator and the webhook: --third-party-plugins"
        for entry in _foreign_entries()
    }


def _own(name: str, load: Callable[[], Plugin]) -> Source:
    return Source(name, "vcjob", __version__, load)


def _foreign(name: str, entries: list[importlib.metadata.EntryPoint]) -> Source:
    entry = entries[0]
    if len(entries) > 1:
        packages = " and ".join(map(_package, entries))
        message = f'several packages bring a plugin "{name}": {packages}; uninstall all but one'
        return Source(name, packages, "", partial(_refuse, message))
    version = entry.dist.version if entry.dist else ""
    return Source(name, _package(entry), version, partial(_load_entry, entry))


def _itself(plugin: Plugin) -> Plugin:
    return plugin


def _load_own(name: str) -> Plugin:
    plugin: Plugin = importlib.import_module(f"{__package__}.{name}").PLUGIN
    return plugin


def _refuse(message: str) -> Plugin:
    raise PluginError(message)


def _load_entry(entry: importlib.metadata.EntryPoint) -> Plugin:
    blame = _blame(entry)
    try:
        plugin = entry.load()
    except (Exception, SystemExit) as error:  # whatever a module does while it is imported
        raise PluginError(f"{blame} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(plugin, Plugin):
        raise PluginError(f"{blame} is no Plugin; {entry.value} must name one")
    if plugin.name != entry.name:
        raise PluginError(f'{blame} calls itself "{plugin.name}"; the two names must be the same')
    return guarded(plugin, blame)


def _package(entry: importlib.metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def _blame(entry: importlib.metadata.EntryPoint) -> str:
    version = f" {entry.dist.version}" if entry.dist else ""
    return f'the plugin "{entry.name}" of the package {_package(entry)}{version}'
