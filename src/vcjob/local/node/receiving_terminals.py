"""The other end of ``terminals.py``: what drives a terminal, in the engine.

Apart from it, because that is in the memory of what forks containers, and asyncio is large.
"""

import asyncio
import contextlib
import os
import socket

from vcjob.local.node.terminals import is_master


async def receive_terminal(connection: socket.socket) -> int | None:
    """The master of the terminal; None when the program ended before it had one.

    ``connection`` is the other end of ``become_terminal``'s, non-blocking; nobody else may have
    that one open. The caller closes the descriptor. What is no terminal is not passed on.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)
    found: list[int] = []
    with contextlib.suppress(ConnectionError):
        _, found, _, _ = socket.recv_fds(connection, 1, 1)
    for fd in found:
        os.set_inheritable(fd, False)
        if is_master(fd):
            return fd
        os.close(fd)
    return None
