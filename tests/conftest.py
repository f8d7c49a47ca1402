"""For all tests: options of ours; and how long something takes on a busy machine fails no test."""

import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import client_packages
import pytest
from hypothesis import settings

# Where the tests run in the background of a script, SIGINT is ignored, and so by all they start;
# below nohup it is SIGHUP.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("vcjob", deadline=None)
settings.load_profile("vcjob")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our tests."""
    parser.addoption(
        "--clients",
        action="store_true",
        help="install kubectl, helm and other clients of Kubernetes into environments beside the "
        "checkout, for the tests marked clients; without it they skip what is not installed",
    )
    cluster = parser.getgroup("a cluster of yours", "for tests/kubernetes/end_to_end")
    cluster.addoption(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="the cluster that is tested; without it an engine that is started for the tests",
    )
    cluster.addoption("--context", default="", metavar="NAME", help="a context of that file")
    cluster.addoption(
        "--installed",
        action="store_true",
        help="controller and webhook are there already; without it the tests start vcjob's own",
    )
    cluster.addoption(
        "--controller",
        choices=("vcjob", "volcano"),
        default="vcjob",
        help="whose behaviour is expected; volcano: vc-controller-manager's, with --installed",
    )
    cluster.addoption(
        "--record",
        type=Path,
        metavar="DIR",
        help="write phases, Events and objects of each test there, to compare two controllers",
    )
    cluster.addoption(
        "--manifests",
        type=Path,
        metavar="DIR",
        help="Jobs that are reviewed and run to the point where their pods exist; without it those "
        "in examples/",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make clients that were asked for importable, behind what the tests themselves use."""
    if config.getoption("--clients"):
        client_packages.torchx()  # here, because the time of a test is limited
        client_packages.schemathesis()
        sys.path.append(str(client_packages.clients()))


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Operator and webhook set up logging for good; tests that begin them here must not pass it on.

    With another level, other tests would read what is logged otherwise.
    """
    asyncio_log = logging.getLogger("asyncio")
    logs = [(log, log.level, log.handlers[:]) for log in (logging.getLogger(), asyncio_log)]
    yield
    for log, level, handlers in logs:
        if log.level != level:
            log.setLevel(level)
        log.handlers[:] = handlers
    logging.captureWarnings(False)
