import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from vcjob import __version__
from vcjob.cli.main import cli
from vcjob.plugins.registry import GROUP, installed_plugins

MODULE = """
from vcjob.plugins.base import Argument, Plugin
PLUGIN = Plugin(
    name="greet",
    help="Greets \\x1b[31mred.",
    arguments=(
        Argument("words", 3, "how many words"),
        Argument("loud", False, "shout"),
        Argument("key", "", "what only the greeted know", secret=True),
    ),
    requires=("svc",),
)
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "greeting.py").write_text(MODULE)
    information = tmp_path / "greeter-1.5.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.5\n")
    entries = ("greet = greeting:PLUGIN", "env = greeting:PLUGIN", "broken = no_such_module:X")
    (information / "entry_points.txt").write_text("\n".join((f"[{GROUP}]", *entries)))
    monkeypatch.syspath_prepend(tmp_path)


def run(*arguments: str, columns: int = 80) -> Result:
    return CliRunner().invoke(
        cli, ["plugins", *arguments], standalone_mode=False, terminal_width=columns
    )


def test_every_plugin_is_listed_with_its_arguments_in_the_order_of_work() -> None:
    result = run()
    assert result.return_value == 0
    headings = [line for line in result.output.splitlines() if line and line[0] != " "]
    names = installed_plugins(third_party=False).names()
    assert headings[: len(names)] == [f"{name} (vcjob {__version__})" for name in names]
    for name in names:
        for argument in installed_plugins(third_party=False).find(name).arguments:
            assert f"  --{argument.name}={argument.type_name} " in result.output


@pytest.mark.usefixtures("packages")
def test_a_plugin_of_a_package_is_shown_with_where_it_comes_from() -> None:
    result = run("greet")
    assert result.return_value == 0
    assert result.output == (
        "greet (greeter 1.5)\n"
        "  Greets \\x1b[31mred.\n"
        "  Brings svc, which it needs.\n"
        "  --words=int   how many words (default 3)\n"
        "  --loud=bool   shout (default false)\n"
        "  --key=string  what only the greeted know\n"
    )


@pytest.mark.usefixtures("packages")
def test_a_plugin_that_cannot_be_used_says_why_and_disturbs_no_other() -> None:
    result = run()
    assert result.return_value == 0
    assert "broken (greeter 1.5)\n  Cannot be used: the plugin" in result.output
    assert "greet (greeter 1.5)" in result.output
    assert result.stderr == (
        'warning: the plugin "env" of the package greeter 1.5 is not used: a plugin of vcjob has '
        "that name\n"
    )
    alone = run("broken")
    assert alone.return_value == 1
    assert "No module named 'no_such_module'" in alone.output


def test_an_unknown_plugin_is_wrong_usage_with_what_was_meant() -> None:
    result = run("svv")
    assert 'there is no plugin "svv"; did you mean "svc"?' in str(result.exception)
    assert result.return_value is None


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_every_field(form: str, read: Any) -> None:
    report = read(run("-o", form).stdout)
    listed = {one["name"]: one for one in report["plugins"]}
    assert listed["ssh"]["arguments"][3]["port"] is True
    assert listed["svc"]["kinds"][1] == {"apiVersion": "v1", "kind": "Service"}
    assert listed["broken"]["error"]
    assert listed["greet"]["package"] == "greeter"
    assert listed["greet"]["requires"] == ["svc"]
    assert listed["greet"]["arguments"][2] == {
        "name": "key",
        "type": "string",
        "default": "",
        "help": "what only the greeted know",
        "secret": True,
        "port": False,
    }
    assert len(report["unused"]) == 1


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    longest = max(map(len, run(columns=columns).output.splitlines()))
    assert longest <= columns
