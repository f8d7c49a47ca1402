"""The name server's loop, over loopback."""

import socket
import threading
from collections.abc import Iterator

import pytest
from dnslib import RCODE, DNSRecord

from vcjob.local.names.records import Record, RecordKind, Update
from vcjob.local.names.server import NameServer, bind, encode_update

NAME = "j-w-0.j.ns.svc.cluster.local"


class Running:
    def __init__(self) -> None:
        self.datagrams, self.stream = _bind_same_port()
        self.address = self.datagrams.getsockname()
        self.feed, feed = socket.socketpair()
        self.thread = threading.Thread(
            target=NameServer(self.datagrams, self.stream, feed).serve, daemon=True
        )
        self.thread.start()

    def tell(self, update: Update) -> None:
        self.feed.sendall(encode_update(update))

    def ask(self, name: str) -> DNSRecord:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(20)
            client.sendto(DNSRecord.question(name).pack(), self.address)
            return DNSRecord.parse(client.recv(4096))

    def until_found(self, name: str) -> list[str]:
        while not (reply := self.ask(name)).rr:
            pass
        return [str(record.rdata) for record in reply.rr]


def _bind_same_port() -> tuple[socket.socket, socket.socket]:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        try:
            return bind("127.0.0.1", port)
        except OSError:
            continue


@pytest.fixture
def server() -> Iterator[Running]:
    running = Running()
    yield running
    running.feed.close()
    running.thread.join(20)
    assert not running.thread.is_alive()
    running.datagrams.close()
    running.stream.close()


def record(number: int) -> Record:
    return Record(NAME, RecordKind.A, f"10.128.{number // 250}.{number % 250}")


def test_a_name_is_found_once_the_feed_has_told_it(server: Running) -> None:
    assert server.ask(NAME).header.rcode == RCODE.NXDOMAIN
    server.tell(Update(added=(record(1),)))
    assert server.until_found(NAME) == ["10.128.0.1"]


def test_garbage_does_not_stop_it(server: Running) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for packet in (b"", b"x", b"\xff" * 200):
            client.sendto(packet, server.address)
    server.tell(Update(added=(record(1),)))
    assert server.until_found(NAME) == ["10.128.0.1"]


def test_long_answers_come_by_tcp_several_on_one_connection(server: Running) -> None:
    server.tell(Update(added=tuple(record(number) for number in range(300))))
    while not server.ask(NAME).header.tc:
        pass
    packet = DNSRecord.question(NAME).pack()
    with socket.create_connection(server.stream.getsockname(), timeout=20) as client:
        client.sendall((len(packet).to_bytes(2, "big") + packet) * 2)
        stream = client.makefile("rb")
        for _ in range(2):
            length = int.from_bytes(stream.read(2), "big")
            assert len(DNSRecord.parse(stream.read(length)).rr) == 300


def test_a_client_that_says_nothing_does_not_hold_the_others_up(server: Running) -> None:
    with socket.create_connection(server.stream.getsockname(), timeout=20):
        server.tell(Update(added=(record(1),)))
        assert server.until_found(NAME) == ["10.128.0.1"]


def test_a_storm_of_look_ups_is_answered(server: Running) -> None:
    """40 workers with 8 processes each ask at once (P14)."""
    server.tell(Update(added=(record(1),)))
    server.until_found(NAME)
    packet = DNSRecord.question(NAME).pack()
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(320)]
    for client in clients:
        client.settimeout(20)
        client.sendto(packet, server.address)
    answers = [DNSRecord.parse(client.recv(4096)) for client in clients]
    for client in clients:
        client.close()
    assert all(len(reply.rr) == 1 for reply in answers)
