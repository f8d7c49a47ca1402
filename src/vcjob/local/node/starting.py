"""The node's side of ``starter.py``: one order at a time, answered at once."""

import errno
import os
import socket
from collections.abc import Sequence

from vcjob.local.node.executables import run_beside
from vcjob.local.node.starter import MOST_DESCRIPTORS, Holder, Sandbox, encode


class Starter:
    """Has sandboxes forked by a process that starts now, and again if it has ended."""

    def __init__(self) -> None:
        self._control = _begin()

    def fork(self, order: Sandbox | Holder, descriptors: Sequence[int]) -> int:
        """Have the order carried out by a new child of this process, whose number it returns.

        The descriptors are duplicated, the caller keeps its own. Raises OSError.
        """
        if len(descriptors) >= MOST_DESCRIPTORS:
            raise OSError(errno.E2BIG, f"{len(descriptors)} volumes and files are too many")
        document = memory_file(encode(order))
        try:
            answer = self._ask([document, *descriptors])
        finally:
            os.close(document)
        if not answer:
            self._begin_anew()
            raise OSError(errno.EIO, "the process that starts containers ended; one is new")
        child = int.from_bytes(answer, "big", signed=True)
        if child < 0:
            raise OSError(-child, os.strerror(-child))
        return child

    def _ask(self, descriptors: Sequence[int]) -> bytes:
        """Send an order; returns the answer, empty if it is not known what became of the order."""
        try:
            socket.send_fds(self._control, [b"f"], descriptors)
        except ConnectionError:  # it had ended before, so that nothing was done
            self._begin_anew()
            socket.send_fds(self._control, [b"f"], descriptors)
        try:
            return self._control.recv(4)
        except ConnectionError:
            return b""

    def _begin_anew(self) -> None:
        self._control.close()
        self._control = _begin()


def memory_file(content: bytes) -> int:
    """A file without a name that holds ``content``, ready to be read from its beginning."""
    fd = os.memfd_create("vcjob", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _begin() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        run_beside("vcjob.local.node.starter", theirs.fileno())
    return ours
