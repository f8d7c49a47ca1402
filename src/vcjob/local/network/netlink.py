"""Talking netlink: requests in batches over one socket, answers matched, errors told by step.

Both families that vcjob speaks, rtnetlink (links, routes) and nfnetlink (packet filter), share
this file: the message and attribute format of netlink(7), and a socket that sends many requests
with one system call and reads an acknowledgement for each.

Own code, because the library costs more than the work: pyroute2 0.9 takes 3-5 ms a pod for these
requests and 0.2 s to import. Here all twelve take 0.75 ms of ``add_pod``'s 1.3 (500 pods, two
cores; links.py has the parts), nearly all of it the kernel's.
"""

import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator

import msgspec

from vcjob.api.errors import VcjobError

NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_REPLACE = 0x100
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400

NLA_F_NESTED = 0x8000

_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_ERROR = struct.Struct("=i")
_RECEIVE = 1 << 16
_ALIGNED = 4
# One datagram must fit into the socket's send buffer, and its acknowledgements into the receive
# buffer, where the kernel counts each as some 800 bytes whatever its length.
_MOST_REQUESTS = 128
_MOST_BYTES = 64 << 10
_BATCH_MARKS = 256


class NetlinkError(VcjobError):
    """The kernel refused a request. ``number`` is the errno, ``step`` what was being done."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(f"cannot {step}: {os.strerror(number)}")
        self.step = step
        self.number = number


class Request(msgspec.Struct, frozen=True):
    """One request: message type, flags beyond NLM_F_REQUEST, and payload.

    ``step`` says in words what it does, for the error text. ``ignore`` are error numbers that
    mean that nothing is left to do.
    """

    step: str
    kind: int
    flags: int
    payload: bytes
    ignore: tuple[int, ...] = ()


_NETFILTER = struct.pack("!BBH", 0, 0, 10)  # any family, version 0, to nf_tables
_BATCH_BEGIN = Request("begin a change of the packet filter", 0x10, 0, _NETFILTER)
_BATCH_END = Request("end a change of the packet filter", 0x11, 0, _NETFILTER)


def attribute(kind: int, value: bytes) -> bytes:
    """An attribute: length, type, value, padded to four bytes."""
    return _ATTRIBUTE.pack(len(value) + 4, kind) + value + b"\0" * (-len(value) % _ALIGNED)


def nested(kind: int, *attributes: bytes) -> bytes:
    """An attribute that holds attributes."""
    return attribute(kind | NLA_F_NESTED, b"".join(attributes))


def text(kind: int, value: str) -> bytes:
    """An attribute that holds a string, ended by a zero byte as netlink wants it."""
    return attribute(kind, value.encode() + b"\0")


def u32(kind: int, value: int) -> bytes:
    """An attribute that holds a number in the machine's byte order (rtnetlink)."""
    return attribute(kind, struct.pack("=I", value))


def be32(kind: int, value: int) -> bytes:
    """An attribute that holds a number in network byte order (nfnetlink)."""
    return attribute(kind, struct.pack("!I", value))


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes in ``data``; stops at the first that is cut short."""
    at = 0
    while at + 4 <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < 4:
            return
        yield kind & ~NLA_F_NESTED, data[at + 4 : at + length]
        at += -(-length // _ALIGNED) * _ALIGNED


class Netlink:
    """A netlink socket. It belongs to the network namespace in which it was made, for ever.

    So requests for a pod's namespace need a socket that was made there, not the thread there.
    """

    def __init__(self, family: int) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family
        )
        self._socket.bind((0, 0))
        self._sequence = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def __enter__(self) -> "Netlink":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, requests: Iterable[Request]) -> None:
        """Carry out requests in order, many to a system call; raises NetlinkError.

        The kernel goes on after a refused request; the first one refused is raised, when all have
        been answered.
        """
        failed: NetlinkError | None = None
        for batch in _batches(requests):
            failed = self._run_batch(batch) or failed
        if failed:
            raise failed

    def _run_batch(self, batch: list[Request]) -> NetlinkError | None:
        waiting: dict[int, Request] = {}
        data = bytearray()
        for request in batch:
            self._sequence += 1
            data += self._encode(request, NLM_F_ACK)
            waiting[self._sequence] = request
        self._send(data, batch[0].step)
        failures: dict[int, NetlinkError] = {}
        while waiting:
            for kind, sequence, payload in self._receive():
                if kind != _NLMSG_ERROR or sequence not in waiting:
                    continue
                request = waiting.pop(sequence)
                number = -_ERROR.unpack_from(payload)[0]
                if number and number not in request.ignore:
                    failures[sequence] = NetlinkError(request.step, number)
        return failures[min(failures)] if failures else None

    def transact(self, requests: Iterable[Request]) -> None:
        """Carry out requests to nf_tables as a transaction: all of them or none.

        What does not fit into the socket's send buffer (200 KB, some 4,000 elements of a set)
        becomes several transactions, in order. Raises NetlinkError for the first request refused.
        """
        room = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) - _BATCH_MARKS
        for batch in _batches(requests, most_bytes=room, most_requests=sys.maxsize):
            self._transact(batch)

    def _transact(self, batch: list[Request]) -> None:
        begin = self._sequence + 1
        data = bytearray()
        for request in (_BATCH_BEGIN, *batch, _BATCH_END):
            self._sequence += 1
            # The kernel reports what it refuses without being asked. The answer to the last
            # request comes after all of these, so that one acknowledgement is enough.
            data += self._encode(request, NLM_F_ACK if request is batch[-1] else 0)
        end = self._sequence - 1
        self._send(data, batch[0].step)
        failures: dict[int, NetlinkError] = {}
        answered = False
        while not answered:
            for kind, sequence, payload in self._receive():
                if kind != _NLMSG_ERROR or not begin <= sequence <= end:
                    continue
                if number := -_ERROR.unpack_from(payload)[0]:
                    # The first mark stands for the whole: not permitted, or refused at its end.
                    step = batch[max(sequence - begin - 1, 0)].step
                    failures[sequence] = NetlinkError(step, number)
                answered |= sequence in (begin, end)
        if failures:
            raise failures[min(failures)]

    def ask(self, request: Request) -> bytes:
        """Send one request and return the payload of its answer; raises NetlinkError."""
        self._sequence += 1
        self._send(self._encode(request, 0), request.step)
        while True:
            for kind, sequence, payload in self._receive():
                if sequence != self._sequence:
                    continue
                if kind == _NLMSG_ERROR:
                    raise NetlinkError(request.step, -_ERROR.unpack_from(payload)[0])
                if kind != _NLMSG_DONE:
                    return payload

    def _encode(self, request: Request, flags: int) -> bytes:
        length = _HEADER.size + len(request.payload)
        header = _HEADER.pack(
            length, request.kind, NLM_F_REQUEST | flags | request.flags, self._sequence, 0
        )
        return header + request.payload + b"\0" * (-length % _ALIGNED)

    def _send(self, data: bytes | bytearray, step: str) -> None:
        try:
            self._socket.send(data)
        except OSError as error:
            raise NetlinkError(step, error.errno or 0) from error

    def _receive(self) -> Iterator[tuple[int, int, bytes]]:
        """The messages of one datagram: type, sequence number, payload."""
        data = self._socket.recv(_RECEIVE)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, _, sequence, _ = _HEADER.unpack_from(data, at)
            if length < _HEADER.size:
                return
            yield kind, sequence, data[at + _HEADER.size : at + length]
            at += -(-length // _ALIGNED) * _ALIGNED


def _batches(
    requests: Iterable[Request],
    most_bytes: int = _MOST_BYTES,
    most_requests: int = _MOST_REQUESTS,
) -> Iterator[list[Request]]:
    batch: list[Request] = []
    size = 0
    for request in requests:
        length = len(request.payload) + _HEADER.size + _ALIGNED
        if batch and (len(batch) == most_requests or size + length > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(request)
        size += length
    if batch:
        yield batch
