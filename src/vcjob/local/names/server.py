"""The name server: a process of its own, so that look-ups are answered while pods are started.

It gets sockets that are bound already and a feed of updates from the engine, and ends when the
feed does. One loop over all of them; nothing in it waits.

dnslib takes 85 µs a query; with the system calls around it one costs 130 µs of CPU, and 35 where
the same was asked since the records last changed, as in the storm when a job begins.
"""

import contextlib
import selectors
import socket
import time

import msgspec

from vcjob.local.names.answers import Table, answer
from vcjob.local.names.records import Update

_LENGTH = 4
_PACKETS_A_TURN = 64
_LARGEST_PACKET = 65535
_MOST_ANSWERS = 4096
_MOST_CONNECTIONS = 128
_IDLE_SECONDS = 10.0
_RECEIVE_BUFFER = 4 << 20

Address = tuple[str, int]


def bind(address: str, port: int = 53) -> tuple[socket.socket, socket.socket]:
    """The server's UDP and TCP sockets in this network namespace; raises OSError."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        # Hundreds of pods look each other up in the same moment; what does not fit is asked again
        # only a second later. The machine's limit cuts this number, without an error.
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        datagrams.bind((address, port))
        stream.bind((address, port))
        stream.listen(_MOST_CONNECTIONS)
    except OSError:
        datagrams.close()
        stream.close()
        raise
    for each in (datagrams, stream):
        each.setblocking(False)
    return datagrams, stream


def encode_update(update: Update) -> bytes:
    """An update as it travels on the feed."""
    body = msgspec.msgpack.encode(update)
    return len(body).to_bytes(_LENGTH, "big") + body


class NameServer:
    """Answers on both sockets from the records that come over ``feed``."""

    def __init__(
        self, datagrams: socket.socket, stream: socket.socket, feed: socket.socket
    ) -> None:
        self._datagrams = datagrams
        self._stream = stream
        self._feed = feed
        self._unread = bytearray()
        self._table = Table()
        self._answers: dict[bytes, bytes] = {}
        self._decode = msgspec.msgpack.Decoder(Update).decode
        self._connections: dict[socket.socket, _Connection] = {}
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Answer until the feed ends; the feed and all connections are closed then."""
        self._feed.setblocking(False)
        with self._feed, self._selector:
            self._serve()
            for connection in list(self._connections):
                self._close(connection)

    def _serve(self) -> None:
        for each in (self._datagrams, self._stream, self._feed):
            self._selector.register(each, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj: events for key, events in self._selector.select(_IDLE_SECONDS)}
            # Queries are taken before records are, and answered after: whoever asks once the engine
            # has told of a pod finds it (P11), however close the two were.
            queries = self._take_datagrams() if self._datagrams in ready else []
            if not self._read_feed():
                return
            self._answer_datagrams(queries)
            if self._stream in ready:
                self._accept()
            for connection in [c for c in ready if c in self._connections]:
                assert isinstance(connection, socket.socket)
                self._serve_connection(connection)
            self._drop_idle()

    def _read_feed(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            data = self._feed.recv(1 << 20)
            if not data:
                return False
            self._unread += data
        while len(self._unread) >= _LENGTH:
            end = _LENGTH + int.from_bytes(self._unread[:_LENGTH], "big")
            if len(self._unread) < end:
                break
            self._table.apply(self._decode(bytes(self._unread[_LENGTH:end])))
            self._answers.clear()
            del self._unread[:end]
        return True

    def _take_datagrams(self) -> list[tuple[bytes, Address]]:
        queries: list[tuple[bytes, Address]] = []
        with contextlib.suppress(OSError):  # nothing more, or the echo of an answer to a gone pod
            while len(queries) < _PACKETS_A_TURN:
                queries.append(self._datagrams.recvfrom(_LARGEST_PACKET))
        return queries

    def _answer_datagrams(self, queries: list[tuple[bytes, Address]]) -> None:
        for packet, sender in queries:
            found = self._remembered(packet)
            if found is not None:
                with contextlib.suppress(OSError):
                    self._datagrams.sendto(found, sender)

    def _remembered(self, packet: bytes) -> bytes | None:
        """The answer, made once for all who ask the same between two changes of the records."""
        identifier, question = packet[:2], packet[2:]
        found = self._answers.get(question)
        if found is None:
            made = answer(packet, self._table)
            if made is None:
                return None
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[question] = made[2:]
        return identifier + found

    def _accept(self) -> None:
        try:
            connection, _ = self._stream.accept()
        except OSError:
            return
        if len(self._connections) >= _MOST_CONNECTIONS:
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection] = _Connection()
        self._selector.register(connection, selectors.EVENT_READ)

    def _serve_connection(self, connection: socket.socket) -> None:
        state = self._connections[connection]
        try:
            alive = state.turn(connection, self._table)
        except OSError:
            alive = False
        if not alive:
            self._close(connection)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if state.unsent else 0)
        self._selector.modify(connection, events)

    def _drop_idle(self) -> None:
        limit = time.monotonic() - _IDLE_SECONDS
        for connection in [c for c, state in self._connections.items() if state.used < limit]:
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._connections[connection]
        connection.close()


class _Connection:
    """What one TCP connection has still to be read and written (RFC 7766: length, message)."""

    def __init__(self) -> None:
        self.used = time.monotonic()
        self.unsent = bytearray()
        self._unread = bytearray()

    def turn(self, connection: socket.socket, table: Table) -> bool:
        """Read, answer and write what goes without waiting; False when the peer is done."""
        self.used = time.monotonic()
        alive = True
        # A peer that does not take its answers is not read from either.
        if len(self.unsent) < _LARGEST_PACKET:
            with contextlib.suppress(BlockingIOError):
                data = connection.recv(_LARGEST_PACKET)
                alive = bool(data)
                self._unread += data
        while len(self._unread) >= 2:
            end = 2 + int.from_bytes(self._unread[:2], "big")
            if len(self._unread) < end:
                break
            found = answer(bytes(self._unread[2:end]), table, tcp=True)
            del self._unread[:end]
            if found is None:
                return False
            self.unsent += len(found).to_bytes(2, "big") + found
        if self.unsent:
            with contextlib.suppress(BlockingIOError):
                del self.unsent[: connection.send(self.unsent)]
        return alive or bool(self.unsent)
