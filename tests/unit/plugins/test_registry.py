import importlib.metadata
from pathlib import Path

import pytest

from vcjob.api.defaults import apply_defaults
from vcjob.plugins import registry
from vcjob.plugins.base import Plugin, PluginError
from vcjob.plugins.registry import Registry, in_order, installed_plugins, registry_of


def test_volcanos_plugins_come_first_in_their_order_and_others_by_name() -> None:
    names = ["zz", "svc", "mpi", "aa", "env"]
    assert in_order(names) == ["env", "svc", "mpi", "aa", "zz"]


def test_our_own_plugins_are_there_under_their_names() -> None:
    found = installed_plugins(third_party=False)
    assert {"env", "svc"} <= set(found.names())
    assert all(found.find(name).name == name for name in found.names())


def test_every_argument_has_a_help_and_every_plugin_a_line() -> None:
    found = installed_plugins(third_party=False)
    for name in found.names():
        plugin = found.find(name)
        assert plugin.help.endswith(".")
        assert all(argument.help for argument in plugin.arguments)


def test_an_unknown_plugin_is_told_with_what_was_meant() -> None:
    with pytest.raises(PluginError, match='no plugin "svcc"; did you mean "svc"'):
        installed_plugins(third_party=False).find("svcc")


def entry(name: str, value: str) -> importlib.metadata.EntryPoint:
    return importlib.metadata.EntryPoint(name, value, registry.GROUP)


PACKAGE = """
from vcjob.plugins.base import Plugin
GREET = Plugin(name="greet", help="Greets.")
"""


@pytest.fixture
def with_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Plugins as packages that vcjob does not know would bring them."""
    (tmp_path / "greeting_package.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    found = [
        entry("greet", "greeting_package:GREET"),
        entry("absent", "no_such_module:PLUGIN"),
        entry("number", "math:pi"),
        entry("other", "greeting_package:GREET"),
        entry("svc", "greeting_package:GREET"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found)
    return installed_plugins()


def test_a_package_adds_a_plugin_by_an_entry_point(with_entries: Registry) -> None:
    assert with_entries.find("greet").help == "Greets."


def test_a_package_cannot_take_the_place_of_our_plugin(with_entries: Registry) -> None:
    assert with_entries.find("svc") is installed_plugins(third_party=False).find("svc")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "no_such_module.*cannot be imported: ModuleNotFoundError"),
        ("number", "math:pi.*is no Plugin"),
        ("other", 'calls itself "greet"'),
    ],
)
def test_a_broken_package_is_named_and_matters_only_when_it_is_used(
    with_entries: Registry, name: str, message: str
) -> None:
    assert name in with_entries.names()
    with pytest.raises(PluginError, match=message):
        with_entries.find(name)


def test_plugins_at_hand_make_a_registry() -> None:
    greet = Plugin(name="greet", help="Greets.")
    assert registry_of([greet]).find("greet") is greet


def test_defaulting_adds_the_plugins_that_ours_require() -> None:
    found = installed_plugins(third_party=False)
    for name in found.names():
        plugins = apply_defaults({"spec": {"plugins": {name: []}}})["spec"]["plugins"]
        assert set(found.find(name).requires) <= set(plugins)
