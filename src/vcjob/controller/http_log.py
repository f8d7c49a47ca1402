"""What aiohttp tells of connections, without what only a client is to blame for.

It logs a request that is no HTTP, and a client that hangs up early, as errors with tracebacks: any
program that reaches the port could fill the log with them.
"""

import logging

from aiohttp.http_exceptions import HttpProcessingError

http_log = logging.getLogger(__name__)
"""For ``aiohttp.web.Server``."""


def _is_ours(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | ConnectionError)


http_log.addFilter(_is_ours)
