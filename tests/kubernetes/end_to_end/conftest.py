"""The cluster that is tested, with operator and webhook at work on it.

They end with each file: tests elsewhere count the processes that they have started.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from cli_runs import environment, run
from end_to_end.facts import Facts, ask, of_engine
from end_to_end.operating import Operating, Webhook, wait_until_ready, webhook_of_tests
from end_to_end.target import Target, install_definitions
from operators import operators

FACTS = pytest.StashKey[Facts]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a cluster of the user's the tests need an engine."""
    for item in items if config.getoption("kubeconfig") is None else ():
        if "target" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.local)


@pytest.fixture(scope="module")
def target(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    """The cluster, with the definitions of Volcano's kinds."""
    option = pytestconfig.getoption
    if option("controller") == "volcano" and not option("installed"):
        raise pytest.UsageError("--controller volcano goes with --installed")
    directory = tmp_path_factory.mktemp("cluster")
    with contextlib.ExitStack() as stack:
        config = option("kubeconfig") or stack.enter_context(_engine(directory))
        bare = Target(config.absolute(), option("context"), option("controller"), option("record"))
        if not option("installed"):
            asyncio.run(_install(bare, directory))
        yield replace(bare, facts=asyncio.run(_facts(bare, pytestconfig)))


async def _facts(target: Target, config: pytest.Config) -> Facts:
    """What the cluster has; one of the user's is asked once."""
    async with target.cluster() as cluster:
        if not config.getoption("kubeconfig"):
            return await of_engine(cluster)
        if FACTS not in config.stash:
            config.stash[FACTS] = await ask(cluster)
        return config.stash[FACTS]


@contextlib.contextmanager
def _engine(directory: Path) -> Iterator[Path]:
    """An engine that serves, and leaves Jobs, gangs and pods without a node to others."""
    started = run(directory, "engine", "start", "--detach", "--no-controller", "--no-scheduler")
    assert started.code == 0, started
    yield Path(environment(directory)["XDG_STATE_HOME"]) / "vcjob" / "engine" / "kubeconfig"
    ended = run(directory, "engine", "stop", "--now")
    assert ended.code == 0, ended


async def _install(target: Target, directory: Path) -> None:
    printed = run(directory, "manifests", "--only", "crds")
    assert printed.code == 0, printed
    async with target.cluster() as cluster:
        await install_definitions(cluster, [one for one in yaml.safe_load_all(printed.out) if one])


@pytest.fixture(scope="module")
def operator(target: Target, pytestconfig: pytest.Config) -> Iterator[Operating | None]:
    """The operator at work; None where one is installed."""
    if pytestconfig.getoption("installed"):
        yield None
        return
    with operators(target.config) as begin:
        context = ("--context", target.context) if target.context else ()
        # Nobody else is to lead, so that one that is killed is followed at once.
        options = ("--scheduler=volcano", "--no-leader-elect", *context)
        operating = Operating(lambda: begin(*options), begin(*options))
        wait_until_ready(operating.process)
        yield operating
        assert operating.process.end() == 0


@pytest.fixture(scope="module")
def webhook(
    target: Target,
    operator: Operating | None,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Webhook | None]:
    """A webhook that nobody but the tests ask; None where one is installed."""
    if pytestconfig.getoption("installed"):
        yield None
        return
    with webhook_of_tests(target, tmp_path_factory.mktemp("webhook")) as made:
        yield made
