"""The terminal of a container that asks for one: output to its log, input from attached clients."""

import asyncio
import os
import socket

from vcjob.local.agent.logs import ContainerLog
from vcjob.local.agent.pipes import End
from vcjob.local.node.receiving_terminals import receive_terminal


class Terminal:
    """A terminal that is made when the container starts; ``given`` is what the node needs for it.

    ``typed``: the container takes input. Raises OSError without descriptors.
    """

    def __init__(self, *, typed: bool) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        self.given = theirs.detach()
        self._typed = typed
        self._end: End | None = None
        self._never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def started(self, log: ContainerLog) -> None:
        """The node has begun: wait for the terminal, whose output ``log`` takes from then on."""
        self.close_given()
        try:
            master = await receive_terminal(self._ours)
        finally:
            self._ours.close()
        if master is not None:
            self._end = End(os.dup(master))
            log.take_terminal(master)

    async def write(self, data: bytes) -> None:
        """Type, unless the container takes no input; waits while it does not read."""
        if self._end and self._typed:
            await self._end.write(data, self._never)

    def resize(self, columns: int, rows: int) -> None:
        """Set the window size, which tells the programs."""
        if self._end:
            self._end.resize(columns, rows)

    def detached(self) -> None:
        """A client has gone; as everywhere, that ends no input of a terminal."""

    def close_given(self) -> None:
        """The node has its descriptor, or is not to get one."""
        if self.given >= 0:
            os.close(self.given)
            self.given = -1

    def close(self) -> None:
        """The container has ended."""
        self.close_given()
        self._ours.close()
        if self._end:
            self._end.close()
