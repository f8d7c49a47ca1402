"""What an operator answers to probes and to Prometheus: /healthz, /readyz, /metrics.

An answer at all proves that the event loop turns; ``/healthz`` also fails when the work that should
go on does not, so that the kubelet starts the process anew.
"""

import contextlib
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from vcjob.api.errors import VcjobError
from vcjob.kubernetes.operator_metrics import CONTENT_TYPE, OperatorMetrics
from vcjob.kubernetes.readiness import Readiness


class AddressInUse(VcjobError):
    """The address for probes and metrics cannot be listened at."""


@contextlib.asynccontextmanager
async def serve_health(
    address: tuple[str, int],
    readiness: Readiness,
    metrics: OperatorMetrics,
    stuck: Callable[[], str],
    refresh: Callable[[], None] = lambda: None,
) -> AsyncIterator[int]:
    """Answer while the block runs; yields the port. Raises AddressInUse.

    Args:
        address: host (empty: all of them) and port (0: any).
        readiness: what /readyz tells.
        metrics: what /metrics tells.
        stuck: what does not go on as it should; an empty text if all is well.
        refresh: brings ``readiness`` up to date.
    """

    async def healthz(request: web.Request) -> web.Response:
        wrong = stuck()
        return web.Response(text=f"{wrong or 'ok'}\n", status=500 if wrong else 200)

    async def readyz(request: web.Request) -> web.Response:
        refresh()
        return web.Response(text=readiness.text(), status=200 if readiness.ready else 503)

    async def measured(request: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    application.router.add_get("/metrics", measured)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        host, port = address
        site = web.TCPSite(runner, host or None, port)
        try:
            await site.start()
        except OSError as error:
            reason = error.strerror or str(error)
            raise AddressInUse(
                f"{host or '*'}:{port} cannot be listened at: {reason}; "
                "name another with --health-address"
            ) from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
