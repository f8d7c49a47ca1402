"""The run of what stays on a cluster, operator or webhook: why it ended is in its log."""

import asyncio
import logging
from collections.abc import Coroutine

from vcjob.api.errors import VcjobError, first_of
from vcjob.cli.exit_codes import ExitCode


def run_to_end(work: Coroutine[None, None, None], log: logging.Logger) -> ExitCode:
    """Run until it ends by itself; what it fails with is logged.

    A fault is logged with its trace; what an administrator can act on is one sentence.
    """
    try:
        asyncio.run(work)
    except Exception as error:  # what was not foreseen has to be in the log, too
        cause = first_of(error)
        trace = None if isinstance(cause, VcjobError) else cause
        log.error("%s", cause or type(cause).__name__, exc_info=trace)
        return ExitCode.FAILED
    return ExitCode.COMPLETED
