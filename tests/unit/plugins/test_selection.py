"""The plugins of a Job together: ports of which each may have its own."""

import pytest

from vcjob.api.problems import Problem
from vcjob.api.types import Job
from vcjob.plugins.registry import installed_plugins
from vcjob.plugins.selection import select

REGISTRY = installed_plugins(third_party=False)
PORTS = [
    (name, argument.name)
    for name in REGISTRY.names()
    for argument in REGISTRY.find(name).arguments
    if argument.name.lower().endswith("port")
]


WRONG = {bool: ["perhaps", ""], int: ["x", "", "1.5"], str: []}
WRONG_ARGUMENTS = [
    (name, token)
    for name in REGISTRY.names()
    for token in (
        "--no-such",
        "--=x",
        *(
            f"--{argument.name}={value}"
            for argument in REGISTRY.find(name).arguments
            for value in WRONG[type(argument.default)]
        ),
    )
]


def problems(**plugins: list[str]) -> list[Problem]:
    task = {"name": "main", "template": {}}
    spec = {"plugins": {"svc": [], **plugins}, "tasks": [task]}
    found = select(Job.of({"metadata": {"name": "j"}, "spec": spec}), REGISTRY).problems
    return [one for one in found if "works only with" not in one.message]


@pytest.mark.parametrize(("plugin", "token"), WRONG_ARGUMENTS)
def test_a_wrong_argument_is_told_with_what_is_right(plugin: str, token: str) -> None:
    [problem] = problems(**{plugin: [token]})
    assert (problem.path, problem.warning) == (("spec", "plugins", plugin, 0), False)
    assert problem.message.startswith(f"plugin {plugin}: ")
    assert problem.hint


@pytest.mark.parametrize(("plugin", "argument"), PORTS)
@pytest.mark.parametrize("port", [-1, 0, 1, 65535, 65536])
def test_a_port_is_a_number_from_1_to_65535(plugin: str, argument: str, port: int) -> None:
    found = problems(**{plugin: [f"--{argument}={port}"]})
    if port in (1, 65535):
        assert found == []
    else:
        [problem] = found
        assert problem.message == f"--{argument}={port} is no port"
        assert (problem.path, problem.warning) == (("spec", "plugins", plugin, 0), False)


def test_what_is_no_number_is_told_once() -> None:
    [problem] = problems(tensorflow=["--port=x"])
    assert problem.message == 'plugin tensorflow: --port: "x" is not a whole number'


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ({"ssh": ["--ssh-port=2222"], "tensorflow": []}, "--port of the plugin tensorflow"),
        ({"ssh": [], "pytorch": ["--port=22"]}, "--port of the plugin pytorch and --ssh-port"),
        ({"pytorch": ["--port=10001"], "ray": []}, "--clientPort of the plugin ray and --port"),
    ],
)
def test_two_plugins_cannot_listen_at_one_port(plugins: dict[str, list[str]], says: str) -> None:
    [problem] = problems(**plugins)
    assert says in problem.message
    assert problem.warning


def test_mpi_means_the_servers_of_ssh_and_defaults_go_together() -> None:
    everything: dict[str, list[str]] = {name: [] for name in REGISTRY.names()}
    assert problems(**everything) == []
    assert problems(ssh=["--ssh-port=9"], mpi=["--port=9"]) == []
