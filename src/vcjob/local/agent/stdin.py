"""Standard input of a container that asks for it: a pipe that attached clients write to."""

import asyncio
import os

from vcjob.local.agent.pipes import End


class Stdin:
    """The pipe; ``given`` is for the container. ``once``: it ends with the first client."""

    def __init__(self, *, once: bool) -> None:
        self.given, writer = os.pipe2(os.O_CLOEXEC)
        self._end = End(writer)
        self._once = once
        self._never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def write(self, data: bytes) -> None:
        """Write all, unless the container closes its end; waits while it does not read."""
        await self._end.write(data, self._never)

    def detached(self) -> None:
        """A client that could write has gone."""
        if self._once:
            self._end.close()

    def close_given(self) -> None:
        """The container has its end, or has failed to start."""
        if self.given >= 0:
            os.close(self.given)
            self.given = -1

    def close(self) -> None:
        """The container has ended."""
        self.close_given()
        self._end.close()
