"""What other programs may rely on: a change here is a change for users, and needs a reason."""

from types import ModuleType

import click
import pytest

import vcjob
from vcjob import peers
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.main import cli
from vcjob.plugins import base, draft


def public_names(module: ModuleType) -> set[str]:
    """Names without underscore that the module lists, or else defines itself."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (vcjob, set()),
        (
            peers,
            {"NoHosts", "PeersNotReady", "hosts", "main", "my_host", "my_index", "my_task",
             "tasks", "wait_for_peers"},
        ),
        (
            base,
            {"AddToPod", "Argument", "KeyPair", "KeyPairNeed", "Plugin", "PluginError", "Request"},
        ),
        (draft, {"ContainerDraft", "PodDraft"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_modules_for_programs_offer_these_names(module: ModuleType, names: set[str]) -> None:
    assert public_names(module) == names


def test_the_package_offers_its_version() -> None:
    assert isinstance(vcjob.__version__, str)


def test_commands() -> None:
    names = cli.list_commands(click.Context(cli))
    assert names == [
        *("run", "submit", "validate", "render", "plugins"),
        *("ls", "get", "describe", "logs", "events", "wait"),
        *("suspend", "resume", "scale", "delete"),
        *("exec", "cp", "port-forward"),
        *("operator", "webhook", "manifests"),
        *("engine", "completion"),
    ]


def test_exit_codes() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "COMPLETED": 0,
        "FAILED": 1,
        "WRONG_USAGE": 2,
        "MANIFEST_REFUSED": 3,
        "MACHINE_CANNOT": 4,
        "TERMINATED": 5,
        "ABORTED": 6,
        "INTERRUPTED": 130,
    }
