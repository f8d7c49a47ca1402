"""Which plugins there are, and the order in which they work.

Volcano runs plugins in random order; ours is fixed (plugins.md section 1). Plugins of other
packages come by entry points of the group ``vcjob.plugins``. A plugin is imported when a Job
first asks for it, so that a broken package matters only to Jobs that use it.
"""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from vcjob.api.suggestions import suggest
from vcjob.plugins.base import Plugin, PluginError

GROUP = "vcjob.plugins"
ORDER = ("env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank")
"""Volcano's plugins, in the order in which they add to a pod; others follow by name."""


class Registry:
    """Plugins by name, each loaded once, when it is first asked for."""

    def __init__(self, loaders: Mapping[str, Callable[[], Plugin]]) -> None:
        self._loaders = dict(loaders)
        self._loaded: dict[str, Plugin] = {}

    def names(self) -> list[str]:
        """All plugins that there are, in the order in which they work."""
        return in_order(self._loaders)

    def find(self, name: str) -> Plugin:
        """The plugin of this name; raises PluginError if there is none or it cannot be loaded."""
        if name not in self._loaders:
            hint = suggest(name, self._loaders)
            raise PluginError(f'there is no plugin "{name}"{f"; {hint}" if hint else ""}')
        if name not in self._loaded:
            self._loaded[name] = self._loaders[name]()
        return self._loaded[name]


def in_order(names: Iterable[str]) -> list[str]:
    """Plugin names in the order in which they work."""
    position = {name: place for place, name in enumerate(ORDER)}
    return sorted(names, key=lambda name: (position.get(name, len(ORDER)), name))


def registry_of(plugins: Iterable[Plugin]) -> Registry:
    """A registry of plugins that are at hand."""
    return Registry({plugin.name: partial(_itself, plugin) for plugin in plugins})


def installed_plugins(*, third_party: bool = True) -> Registry:
    """Our own plugins and, unless told otherwise, those that other packages bring.

    Another package cannot take the place of one of ours.
    """
    loaders: dict[str, Callable[[], Plugin]] = {
        name: partial(_load_own, name)
        for name in ORDER
        if importlib.util.find_spec(f"{__package__}.{name}")
    }
    if third_party:
        for entry in importlib.metadata.entry_points(group=GROUP):
            loaders.setdefault(entry.name, partial(_load_entry, entry))
    return Registry(loaders)


def _itself(plugin: Plugin) -> Plugin:
    return plugin


def _load_own(name: str) -> Plugin:
    plugin: Plugin = importlib.import_module(f"{__package__}.{name}").PLUGIN
    return plugin


def _load_entry(entry: importlib.metadata.EntryPoint) -> Plugin:
    package = entry.dist.name if entry.dist else entry.value
    blame = f'the plugin "{entry.name}" of the package {package}'
    try:
        plugin = entry.load()
    except Exception as error:  # whatever a module does while it is imported
        raise PluginError(f"{blame} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(plugin, Plugin):
        raise PluginError(f"{blame} is no Plugin; {entry.value} must name one")
    if plugin.name != entry.name:
        raise PluginError(f'{blame} calls itself "{plugin.name}"; the two names must be the same')
    return plugin
