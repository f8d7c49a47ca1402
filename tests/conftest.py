"""For all tests: options of ours; and how long something takes on a busy machine fails no test."""

import signal
import sys

import client_packages
import pytest
from hypothesis import settings

# Where the tests run in the background of a script, SIGINT is ignored, and so by all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("vcjob", deadline=None)
settings.load_profile("vcjob")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our tests."""
    parser.addoption(
        "--clients",
        action="store_true",
        help="install kubectl, helm and other clients of Kubernetes into environments beside the "
        "checkout, and test with them; without it tests skip clients that are not installed",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make clients that were asked for importable, behind what the tests themselves use."""
    if config.getoption("--clients"):
        client_packages.torchx()  # here, because the time of a test is limited
        client_packages.schemathesis()
        sys.path.append(str(client_packages.clients()))
