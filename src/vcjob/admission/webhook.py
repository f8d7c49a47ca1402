"""``vcjob webhook``, put together: certificate, look-ups, reviews, probes."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vcjob.admission.certificates import CERTIFICATE, OwnCertificate
from vcjob.admission.configurations import SERVICE_NAME
from vcjob.admission.given import GivenCertificate
from vcjob.admission.lookups import KINDS, Lookups
from vcjob.admission.metrics import Metrics
from vcjob.admission.reviewing import Rules
from vcjob.admission.server import Reviewer, serve_reviews
from vcjob.controller.clock import Clock, SystemClock
from vcjob.controller.cluster import Cluster
from vcjob.controller.probes import Address, serve_probes
from vcjob.controller.readiness import Readiness
from vcjob.plugins.registry import installed_plugins

DRAINED_FOR = 5.0
"""Seconds in which answers still come after SIGTERM: API servers hear late of a pod that ends."""

_log = logging.getLogger(__name__)


class WebhookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """See ``vcjob webhook --help``.

    ``certificate`` and ``key`` are files; without them the webhook makes a certificate itself.
    """

    namespace: str
    service: str = SERVICE_NAME
    address: Address = ("", 8443)
    health_address: Address = ("", 8080)
    certificate: Path | None = None
    key: Path | None = None
    third_party_plugins: bool = False
    allowed_annotations: frozenset[str] = frozenset()


async def run_webhook(
    cluster: Cluster, options: WebhookOptions, clock: Clock | None = None
) -> None:
    """Answer reviews until SIGTERM or SIGINT. Raises AddressInUse."""
    clock = clock or SystemClock()
    readiness = Readiness(expected=(CERTIFICATE, *(kind.plural for kind in KINDS)))
    metrics = Metrics()
    lookups = Lookups(cluster, readiness)
    certificate = _certificate(cluster, options, readiness, clock)
    rules = Rules(
        installed_plugins(third_party=options.third_party_plugins), options.allowed_annotations
    )
    async with contextlib.AsyncExitStack() as stack:
        ended = stack.enter_context(_told_to_end())
        health = await stack.enter_async_context(
            serve_probes(options.health_address, readiness, metrics.text)
        )
        reviews = await stack.enter_async_context(
            serve_reviews(
                options.address, certificate.context, Reviewer(rules, lookups, metrics), readiness
            )
        )
        _log.info("reviews at port %d, probes and metrics at port %d", reviews, health)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(certificate.keep()), group.create_task(lookups.follow())]
            if await ended == signal.SIGTERM:
                readiness.fail("process", "it ends")
                await asyncio.sleep(DRAINED_FOR)
            for task in tasks:
                task.cancel()


def _certificate(
    cluster: Cluster, options: WebhookOptions, readiness: Readiness, clock: Clock
) -> OwnCertificate | GivenCertificate:
    if options.certificate and options.key:
        host = f"{options.service}.{options.namespace}.svc"
        return GivenCertificate(options.certificate, options.key, host, readiness, clock)
    return OwnCertificate(cluster, options.namespace, options.service, readiness, clock)


@contextlib.contextmanager
def _told_to_end() -> Iterator["asyncio.Future[int]"]:
    """A future that is the first signal that asks for the end; a second one ends at once."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[int] = loop.create_future()

    def tell(number: int) -> None:
        if told.done():
            # By the kernel the first process of a container would not be ended.
            _log.warning("told to end again: ending on the spot")
            logging.shutdown()
            os._exit(128 + number)
        told.set_result(number)

    signals = (signal.SIGTERM, signal.SIGINT)
    for one in signals:
        loop.add_signal_handler(one, tell, one)
    try:
        yield told
    finally:
        for one in signals:
            loop.remove_signal_handler(one)
