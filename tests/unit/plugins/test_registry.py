from pathlib import Path

import pytest

from vcjob.api.defaults import apply_defaults
from vcjob.api.types import Job
from vcjob.plugins.base import Plugin, PluginError
from vcjob.plugins.registry import GROUP, Registry, in_order, installed_plugins, registry_of
from vcjob.plugins.selection import select


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


PACKAGE = """
from vcjob.plugins.base import Plugin
GREET = Plugin(name="greet", help="Greets.")
HELPLESS = Plugin(name="helpless", help="")
NEEDY = Plugin(name="needy", help="Needs.", requires=("svc", "absent"))
"""


def install(directory: Path, package: str, **entries: str) -> None:
    """What is left of a package by its installation, as far as entry points go."""
    information = directory / f"{package}-1.5.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (information / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Plugins of packages that vcjob does not know."""
    (tmp_path / "greeting_package.py").write_text(PACKAGE)
    (tmp_path / "leaving_package.py").write_text("raise SystemExit('bye')")
    install(
        tmp_path,
        "greeter",
        greet="greeting_package:GREET",
        absent="no_such_module:PLUGIN",
        unnamed="greeting_package:NO_SUCH",
        leaving="leaving_package:PLUGIN",
        number="math:pi",
        other="greeting_package:GREET",
        helpless="greeting_package:HELPLESS",
        needy="greeting_package:NEEDY",
        twice="greeting_package:GREET",
        svc="greeting_package:GREET",
    )
    install(tmp_path, "second", twice="greeting_package:GREET")
    monkeypatch.syspath_prepend(tmp_path)
    return installed_plugins(third_party=True)


def test_a_package_adds_a_plugin_by_an_entry_point(installed: Registry) -> None:
    assert installed.find("greet").help == "Greets."
    source = installed.source("greet")
    assert (source.package, source.version) == ("greeter", "1.5")
    assert installed.source("svc").package == "vcjob"


def test_plugins_of_packages_are_there_only_when_that_is_wanted(installed: Registry) -> None:
    ours = installed_plugins(third_party=False)
    assert "greet" not in ours.names()
    assert set(installed.names()) > set(ours.names())
    assert not ours.unused


def test_a_plugin_that_is_installed_but_not_allowed_is_told_of_without_running_it(
    installed: Registry,
) -> None:
    del installed
    ours = installed_plugins(third_party=False)
    with pytest.raises(PluginError) as found:
        ours.find("leaving")  # its module would end the process
    assert str(found.value).startswith(
        'the plugin "leaving" of the package greeter 1.5 is not used; plugins of other packages'
    )
    assert "--third-party-plugins" in str(found.value)
    assert ours.withheld("nosuch") == ""


def test_a_package_cannot_take_the_place_of_our_plugin(installed: Registry) -> None:
    assert installed.find("svc") is installed_plugins(third_party=False).find("svc")
    [(name, sentence)] = installed.unused
    assert name == "svc"
    assert sentence == (
        'the plugin "svc" of the package greeter 1.5 is not used: a plugin of vcjob has that name'
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("unnamed", "cannot be imported: AttributeError"),
        ("leaving", "cannot be imported: SystemExit: bye"),
        ("number", "is no Plugin; math:pi must name one"),
        ("other", 'calls itself "greet"; the two names must be the same'),
        ("helpless", "is wrong: help must be a text"),
    ],
)
def test_a_broken_package_is_named_and_matters_only_when_it_is_used(
    installed: Registry, name: str, message: str
) -> None:
    assert name in installed.names()
    with pytest.raises(PluginError) as found:
        installed.find(name)
    assert str(found.value).startswith(f'the plugin "{name}" of the package greeter 1.5 ')
    assert message in str(found.value)


def test_of_two_packages_with_the_same_plugin_none_is_taken(installed: Registry) -> None:
    with pytest.raises(PluginError, match='bring a plugin "twice": greeter and second; uninstall'):
        installed.find("twice")


def test_defaulting_adds_what_a_packages_plugin_needs(installed: Registry) -> None:
    plugins = {"needy": [], "absent": [], "nosuch": []}
    job = apply_defaults({"spec": {"plugins": plugins}}, requires=installed.requires)
    assert job["spec"]["plugins"] == {**plugins, "svc": []}


def test_a_job_whose_plugin_is_ours_is_told_of_the_other(installed: Registry) -> None:
    job = Job.of({"metadata": {"name": "j"}, "spec": {"plugins": {"svc": []}}})
    [problem] = select(job, installed).problems
    assert problem.warning
    assert "greeter 1.5 is not used" in problem.message


def test_plugins_at_hand_make_a_registry() -> None:
    greet = Plugin(name="greet", help="Greets.")
    assert registry_of([greet]).find("greet") is greet


def test_defaulting_adds_the_plugins_that_ours_require() -> None:
    found = installed_plugins(third_party=False)
    for name in found.names():
        job = {"spec": {"plugins": {name: []}}}
        plugins = apply_defaults(job, requires=found.requires)["spec"]["plugins"]
        assert set(found.find(name).requires) <= set(plugins)
