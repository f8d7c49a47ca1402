"""A TCP proxy that cuts connections at random places: requests, answers and watches break."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

_AT_ONCE = 4096


class Cuts:
    """How much passes before a connection is cut, drawn anew for each; ``made`` counts the cuts."""

    def __init__(self, numbers: random.Random, longest: int) -> None:
        self.made = 0
        self.off = False
        self._numbers = numbers
        self._longest = longest

    def draw(self) -> int:
        """How many bytes the next connection may carry."""
        return self._numbers.randrange(self._longest)


@contextlib.asynccontextmanager
async def cutting_proxy(port: int, cuts: Cuts) -> AsyncIterator[int]:
    """Pass connections on to ``port``, cutting them; yields the proxy's own port."""
    passing: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        left = [cuts.draw()]

        async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while piece := await source.read(_AT_ONCE):
                if not cuts.off:
                    passed, left[0] = min(len(piece), left[0]), left[0] - len(piece)
                    piece = piece[:passed]
                target.write(piece)
                await target.drain()
                if left[0] < 0 and not cuts.off:
                    cuts.made += 1
                    return

        tasks = {asyncio.ensure_future(carry(reader, back)),
                 asyncio.ensure_future(carry(there, writer))}  # fmt: skip
        passing.update(tasks)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            passing.difference_update(tasks)
            for end in (writer, back):
                end.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for task in passing:
            task.cancel()
