"""What an operator or a webhook answers to probes and to Prometheus: /healthz, /readyz, /metrics.

An answer at all proves that the event loop turns; ``/healthz`` also fails when the work that should
go on does not, so that the kubelet starts the process anew.
"""

import asyncio
import contextlib
import resource
import ssl
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from vcjob.api.errors import VcjobError
from vcjob.controller.connections import Connections, save_memory_of_tls
from vcjob.controller.http_log import http_log
from vcjob.controller.os_errors import words_of
from vcjob.controller.readiness import Readiness

Address = tuple[str, int]
"""Host (empty: all of them) and port (0: any)."""

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HANDSHAKE_SECONDS = 10.0
_SILENT_SECONDS = 20.0
"""From when a connection is made to the end of the head of its first request."""
_IDLE_SECONDS = 120.0
"""Longer than the 90 s of API servers: else they ask on a connection that is just being closed."""
_MOST_CONNECTIONS = 1000
_SHARE_OF_DESCRIPTORS = 0.6
"""That connections may take: the process needs some itself, and others are not counted yet."""
_LINGERING_SECONDS = 2.0
"""So long the rest of a request is read once it has been answered, so that the answer arrives."""


class AddressInUse(VcjobError):
    """An address cannot be listened at."""


def _nothing() -> str:
    return ""


def _no_change() -> None:
    return None


@contextlib.asynccontextmanager
async def serve_probes(
    address: Address,
    readiness: Readiness,
    metrics: Callable[[], bytes | None],
    *,
    stuck: Callable[[], str] = _nothing,
    refresh: Callable[[], None] = _no_change,
) -> AsyncIterator[int]:
    """Answer without TLS while the block runs; yields the port. Raises AddressInUse.

    Args:
        address: where.
        readiness: what /readyz tells.
        metrics: what /metrics tells; None where nothing is measured.
        stuck: what does not go on as it should; an empty text if all is well.
        refresh: brings ``readiness`` up to date.
    """

    async def measured(request: web.Request) -> web.Response:
        if (text := metrics()) is None:
            return web.Response(
                text="nothing is counted: pip install vcjob[operator] brings what it takes\n",
                status=404,
            )
        return web.Response(body=text, headers={"Content-Type": _METRICS_TYPE})

    application = web.Application()
    application.router.add_get("/metrics", measured)
    add_probes(application, readiness, stuck=stuck, refresh=refresh)
    async with listening(application, address, "--health-address") as port:
        yield port


def add_probes(
    application: web.Application,
    readiness: Readiness,
    *,
    stuck: Callable[[], str] = _nothing,
    refresh: Callable[[], None] = _no_change,
) -> None:
    """Have an application answer /healthz and /readyz."""

    async def healthz(request: web.Request) -> web.Response:
        wrong = stuck()
        return web.Response(text=f"{wrong or 'ok'}\n", status=500 if wrong else 200)

    async def readyz(request: web.Request) -> web.Response:
        refresh()
        return web.Response(text=readiness.text(), status=200 if readiness.ready else 503)

    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)


@contextlib.asynccontextmanager
async def listening(
    application: web.Application,
    address: Address,
    flag: str,
    *,
    context: ssl.SSLContext | None = None,
    shutdown_seconds: float = 1.0,
    silent_seconds: float = _SILENT_SECONDS,
    most_connections: int = _MOST_CONNECTIONS,
) -> AsyncIterator[int]:
    """Listen while the block runs; yields the port. Raises AddressInUse.

    Args:
        application: answers; bodies that are encoded stay so.
        address: where.
        flag: the option that names another address.
        context: for TLS.
        shutdown_seconds: how long answers under way may take once the block has ended.
        silent_seconds: how long a connection may ask nothing at first.
        most_connections: how many there may be beside those with a request under way.
    """
    if context:
        save_memory_of_tls()
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = min(most_connections, int(descriptors * _SHARE_OF_DESCRIPTORS))
    connections = Connections(silent_seconds, most)
    application.middlewares.append(connections.note)
    runner = web.AppRunner(
        application,
        access_log=None,
        auto_decompress=False,
        keepalive_timeout=_IDLE_SECONDS,
        lingering_time=_LINGERING_SECONDS,
        logger=http_log,
        shutdown_timeout=shutdown_seconds,
    )
    await runner.setup()
    assert runner.server is not None
    looking = asyncio.create_task(connections.keep(runner.server))
    host, port = address
    try:
        try:
            server = await asyncio.get_running_loop().create_server(
                runner.server,
                host or None,
                port,
                ssl=context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if context else None,
            )
        except OSError as error:
            raise AddressInUse(
                f"{host or '*'}:{port} cannot be listened at: {words_of(error)}; "
                f"name another with {flag}"
            ) from error
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
    finally:
        looking.cancel()
        await runner.cleanup()
