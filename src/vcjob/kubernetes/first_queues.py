"""The queues that every cluster has, made when they are missing while an operator starts.

A webhook of ours that does not answer yet, or a missing right, keeps them from being made: that is
tried again, ever more seldom, and keeps nobody from deciding about Jobs of other queues.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from vcjob.api.kinds import QUEUE
from vcjob.controller.backing_off import pause_after
from vcjob.controller.cluster import AlreadyExists, Cluster, ClusterError
from vcjob.kubernetes.installing.objects import queues

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0

_log = logging.getLogger(__name__)


class FirstQueues:
    """Makes the Queues ``root`` and ``default``.

    Args:
        jitter: spreads repeated tries.
        sleep: waits that many seconds.

    Attributes:
        trouble: why a Queue could not be made the last time; empty if all is well.
    """

    def __init__(
        self,
        jitter: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._jitter = jitter or random.Random()
        self._sleep = sleep
        self.trouble = ""

    async def make(self, cluster: Cluster) -> None:
        """Return when both are there, or have been made by us."""
        failures = 0
        while True:
            try:
                await self._make_missing(cluster)
            except ClusterError as error:
                self._tell(str(error))
            else:
                self._tell("")
                return
            failures += 1
            await self._sleep(
                pause_after(
                    failures, self._jitter, first=_FIRST_PAUSE_SECONDS,
                    longest=_LONGEST_PAUSE_SECONDS,
                )
            )  # fmt: skip

    async def _make_missing(self, cluster: Cluster) -> None:
        there = {queue["metadata"]["name"] for queue in (await cluster.list(QUEUE)).items}
        for queue in queues():
            name = queue["metadata"]["name"]
            if name in there:
                continue
            try:
                await cluster.create(QUEUE, queue)
            except AlreadyExists:
                continue
            _log.info("the Queue %s is made", name)

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            _log.warning("the Queues root and default cannot be made: %s", trouble)
        self.trouble = trouble
