"""Ends of pipes and terminals in the event loop: read and written when somebody waits for it.

Not asyncio's transports, which read ahead: who reads here is a client that may be slow, and the
program is to wait for it.
"""

import asyncio
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from typing import Any

_AT_ONCE = 32 * 1024
_LARGEST_SIZE = 0xFFFF


class End:
    """One end of a pipe, or the master of a terminal; owns the descriptor."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._loop = asyncio.get_running_loop()

    async def read(self, ended: "asyncio.Future[Any]") -> bytes:
        """The next bytes; b"" at the end, and when nothing is there although ``ended`` is done."""
        while self.fd >= 0:
            try:
                return os.read(self.fd, _AT_ONCE)
            except BlockingIOError:
                if ended.done():
                    return b""
            except OSError as error:
                if error.errno == errno.EIO:  # a terminal that no program has open
                    return b""
                raise
            await self._ready(self._loop.add_reader, self._loop.remove_reader, ended)
        return b""

    async def write(self, data: bytes, ended: "asyncio.Future[Any]") -> None:
        """Write all, unless the program ends or closes its end."""
        view = memoryview(data)
        while view and self.fd >= 0 and not ended.done():
            try:
                view = view[os.write(self.fd, view) :]
            except BlockingIOError:
                await self._ready(self._loop.add_writer, self._loop.remove_writer, ended)
            except OSError:
                return  # nobody reads it any more

    def resize(self, columns: int, rows: int) -> None:
        """Set the window size of a terminal, which tells its programs."""
        if 0 <= columns <= _LARGEST_SIZE and 0 <= rows <= _LARGEST_SIZE and self.fd >= 0:
            fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        """Close it, also while somebody waits for it. May be called twice."""
        if self.fd >= 0:
            self._loop.remove_reader(self.fd)
            self._loop.remove_writer(self.fd)
            os.close(self.fd)
            self.fd = -1

    async def _ready(
        self,
        add: Callable[..., Any],
        remove: Callable[[int], Any],
        ended: "asyncio.Future[Any]",
    ) -> None:
        ready = self._loop.create_future()
        fd = self.fd

        def tell() -> None:
            remove(fd)
            if not ready.done():
                ready.set_result(None)

        add(fd, tell)
        try:
            await asyncio.wait((ready, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self.fd == fd:
                remove(fd)
