"""The process of ``vcjob operator``: its log, its signals, its end."""

import asyncio
import importlib.util
import logging
import os
import signal

from vcjob import __version__
from vcjob.api.errors import VcjobError
from vcjob.cli.component_run import run_to_end
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.operator_log import set_up
from vcjob.kubernetes.operator_options import OperatorOptions
from vcjob.kubernetes.server import Server

_METRICS_LIBRARY = "prometheus_client"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger(__name__)


class LibraryMissing(VcjobError):
    """The operator's own dependencies are not installed."""


def run_operator(server: Server, options: OperatorOptions, form: str, level: str) -> ExitCode:
    """Run until told to end, or until an administrator has to do something; the exit code.

    Why it ended is logged. Raises LibraryMissing.
    """
    if importlib.util.find_spec(_METRICS_LIBRARY) is None:
        raise LibraryMissing(
            "the operator needs a package that a run on this machine does not: "
            "pip install 'vcjob[operator]'"
        )
    set_up(form, level)
    return run_to_end(_run(server, options), _log)


async def _run(server: Server, options: OperatorOptions) -> None:
    from vcjob.kubernetes.operator import operate

    def serving(port: int) -> None:
        host = options.health_address[0] or "*"
        places = f"namespaces {', '.join(options.namespaces)}" if options.namespaces else "Jobs"
        _log.info(
            "vcjob %s looks after %s at %s; gangs: %s; replicas: %s; probes and metrics at %s:%d",
            __version__,
            places,
            server.shown,
            options.scheduler,
            f"Lease {options.lease_namespace}/vcjob-operator" if options.leader_elect else "one",
            host,
            port,
        )

    loop = asyncio.get_running_loop()
    working = asyncio.create_task(operate(server, options, serving))
    told: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if told:
            _log.warning("told to end again: ending on the spot")
            logging.shutdown()
            os._exit(128 + number)
        told.append(number)
        _log.info("told to end (%s): finishing what is under way", number.name)
        working.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    try:
        await working
    except asyncio.CancelledError:
        if not told:
            raise
        _log.info("ended")
