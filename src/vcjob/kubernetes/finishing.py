"""Writes that were sent are waited for, even by whoever is told to stop meanwhile.

A request that is cancelled half-way leaves open whether it was carried out. Nothing is lost by
that, but whoever follows would find out by conflicts; so an operator that ends lets the last ones
end.
"""

import asyncio
from typing import Any

from vcjob.kubernetes.connection import Answer, Connection
from vcjob.kubernetes.errors import Asked


class FinishingConnection(Connection):
    """A connection whose writes go on when the one who waits for them is cancelled."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._writes: set[asyncio.Task[Answer]] = set()

    async def request(self, method: str, path: str, asked: Asked, **options: Any) -> Answer:
        """Send a request; see ``Connection.request``."""
        if method == "GET":
            return await super().request(method, path, asked, **options)
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
