"""Messages with file descriptors over a stream socket pair, for both ends.

A frame is four bytes of length and a msgpack document. Descriptors (SCM_RIGHTS) travel with the
first byte of their frame, and the kernel never joins bytes across them, so the descriptors that
have arrived when a frame is complete belong to it and to nothing later.
"""

import array
import os
import socket
from collections import deque

MAX_FDS = 16
_LENGTH = 4
_CHUNK = 1 << 18


class Inbox:
    """Collects bytes and descriptors from a socket and hands out whole frames."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._fds: deque[int] = deque()

    def receive(self) -> bool:
        """Read what is there; False when the other end is gone. BlockingIOError: nothing there."""
        room = socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
        try:
            data, ancillary, _, _ = self._connection.recvmsg(_CHUNK, room, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return False
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                self._fds.extend(numbers)
        self._buffer += data
        return bool(data)

    def frame(self) -> bytes | None:
        """The next whole frame, None while it is incomplete."""
        if len(self._buffer) < _LENGTH:
            return None
        end = _LENGTH + int.from_bytes(self._buffer[:_LENGTH], "big")
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH:end])
        del self._buffer[:end]
        return body

    def take_fds(self, count: int) -> list[int]:
        """The next ``count`` descriptors; the caller closes them."""
        return [self._fds.popleft() for _ in range(count)]

    def close(self) -> None:
        """Close descriptors that nobody took."""
        while self._fds:
            os.close(self._fds.popleft())


class Outbox:
    """Sends frames in order, keeping what the socket does not take at once."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._waiting: deque[tuple[memoryview, tuple[int, ...]]] = deque()

    def put(self, body: bytes, fds: tuple[int, ...] = ()) -> None:
        """Queue a frame. The descriptors are duplicated, the caller keeps its own."""
        if len(fds) > MAX_FDS:
            raise ValueError(f"{len(fds)} descriptors in one message, at most {MAX_FDS}")
        frame = memoryview(len(body).to_bytes(_LENGTH, "big") + body)
        self._waiting.append((frame, tuple(os.dup(fd) for fd in fds)))

    def flush(self) -> bool:
        """Send what the socket takes; True when nothing is left. OSError: the other end is gone."""
        while self._waiting:
            frame, fds = self._waiting[0]
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            try:
                sent = self._connection.sendmsg([frame], ancillary if fds else [])
            except BlockingIOError:
                return False
            for fd in fds:
                os.close(fd)
            if sent == len(frame):
                self._waiting.popleft()
            else:
                self._waiting[0] = (frame[sent:], ())
        return True

    def close(self) -> None:
        """Forget what was not sent."""
        while self._waiting:
            for fd in self._waiting.popleft()[1]:
                os.close(fd)
