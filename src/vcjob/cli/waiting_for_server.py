"""What an operator or a webhook does while it cannot tell which API server it is for.

As a pod it stays up and says on /readyz what is wrong: a file that is mounted may come, or be
corrected, without anybody starting it anew. Elsewhere whoever typed the command is told at once.
"""

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from vcjob.cli.exit_codes import ExitCode
from vcjob.controller.probes import Address, serve_probes
from vcjob.controller.readiness import Readiness
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.errors import KubeconfigError

if TYPE_CHECKING:
    from vcjob.kubernetes.server import Server

_AGAIN_SECONDS = 2.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def server_once_known(find: Callable[[], "Server"], health_address: Address) -> "Server":
    """The server that ``find`` tells, as soon as it does without a KubeconfigError.

    Probes are answered meanwhile. Raises AddressInUse, and click's Exit when told to end.
    """
    handlers = [signal.getsignal(number) for number in _SIGNALS]
    try:
        return asyncio.run(_wait(find, health_address))
    except asyncio.CancelledError as error:
        raise click.exceptions.Exit(ExitCode.COMPLETED) from error
    finally:  # the end of the loop left none
        for number, handler in zip(_SIGNALS, handlers, strict=True):
            signal.signal(number, handler)


async def _wait(find: Callable[[], "Server"], health_address: Address) -> "Server":
    loop, waiting = asyncio.get_running_loop(), asyncio.current_task()
    assert waiting is not None
    for number in _SIGNALS:
        loop.add_signal_handler(number, waiting.cancel)
    readiness = Readiness(Condition, expected=(Condition.SERVER,))
    async with serve_probes(health_address, readiness, lambda: b""):
        while True:
            try:
                return find()
            except KubeconfigError as error:
                readiness.fail(Condition.SERVER, str(error))
            await asyncio.sleep(_AGAIN_SECONDS)
