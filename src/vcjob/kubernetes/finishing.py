"""Writes that were sent are waited for, even by whoever is told to stop meanwhile.

A request that is cancelled half-way leaves open whether it was carried out. Nothing is lost by
that, but whoever follows would find out by conflicts; so an operator that ends lets the last ones
end. None is sent by a replica that may not write any more: one that stood still, as in a virtual
machine that was frozen, goes on where it was before it learns that another leads.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from vcjob.controller.cluster import ClusterError
from vcjob.kubernetes.connection import Answer, Connection
from vcjob.kubernetes.errors import Asked


class NotOurs(ClusterError):
    """Another replica may be at work: what was to be written was not."""


class FinishingConnection(Connection):
    """A connection whose writes go on when the one who waits for them is cancelled.

    Attributes:
        may_write: whether a write may be sent now. Without that it raises NotOurs, and nothing is
            done.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.may_write: Callable[[], bool] = lambda: True
        self._writes: set[asyncio.Task[Answer]] = set()

    async def request(self, method: str, path: str, asked: Asked, **options: Any) -> Answer:
        """Send a request; see ``Connection.request``. Raises NotOurs, too."""
        if method == "GET":
            return await super().request(method, path, asked, **options)
        if not self.may_write():
            raise NotOurs("nothing is written any more: the Lease of this replica has run out")
        write = asyncio.create_task(super().request(method, path, asked, **options))
        self._writes.add(write)
        write.add_done_callback(self._forget)
        return await asyncio.shield(write)

    def _forget(self, write: "asyncio.Task[Answer]") -> None:
        self._writes.discard(write)
        if not write.cancelled():
            write.exception()  # nobody may be waiting for it any more

    async def finish(self, seconds: float) -> int:
        """Wait for the writes under way, so long at most; returns how many did not end."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=seconds)
        left = list(self._writes)
        for write in left:
            write.cancel()
        return len(left)
