"""What the name server answers."""

import pytest
from dnslib import EDNS0, QTYPE, RCODE, DNSRecord
from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.names.answers import Table, answer
from vcjob.local.names.records import Record, RecordKind, Update

OWN = "j-w-0.j.ns.svc.cluster.local"
SERVICE = "j.ns.svc.cluster.local"


def table(peers: int = 2) -> Table:
    made = Table()
    records = [Record(SERVICE, RecordKind.A, f"10.128.{i // 250}.{i % 250}") for i in range(peers)]
    records += [
        Record(OWN, RecordKind.A, "10.128.0.2"),
        Record("2.0.128.10.in-addr.arpa", RecordKind.PTR, OWN),
        Record(f"_web._tcp.{SERVICE}", RecordKind.SRV, f"8080 {OWN}"),
    ]
    made.apply(Update(added=tuple(records), services_added=("empty.ns.svc.cluster.local",)))
    return made


def ask(
    name: str, kind: str = "A", *, tcp: bool = False, udp_size: int = 0, peers: int = 2
) -> DNSRecord:
    query = DNSRecord.question(name, kind)
    if udp_size:
        query.add_ar(EDNS0(udp_len=udp_size))
    found = answer(query.pack(), table(peers), tcp=tcp)
    assert found is not None
    reply = DNSRecord.parse(found)
    assert reply.header.id == query.header.id
    return reply


@pytest.mark.parametrize(
    ("name", "kind", "code", "values"),
    [
        (OWN, "A", RCODE.NOERROR, {"10.128.0.2"}),
        (OWN.upper(), "A", RCODE.NOERROR, {"10.128.0.2"}),
        (SERVICE, "A", RCODE.NOERROR, {"10.128.0.0", "10.128.0.1"}),
        (f"_web._tcp.{SERVICE}", "SRV", RCODE.NOERROR, {f"0 100 8080 {OWN}."}),
        ("2.0.128.10.in-addr.arpa", "PTR", RCODE.NOERROR, {f"{OWN}."}),
        (OWN, "AAAA", RCODE.NOERROR, set()),
        ("empty.ns.svc.cluster.local", "A", RCODE.NOERROR, set()),
        ("ns.svc.cluster.local", "A", RCODE.NOERROR, set()),
        ("j-w-9.j.ns.svc.cluster.local", "A", RCODE.NXDOMAIN, set()),
        (f"{OWN}.ns.svc.cluster.local", "A", RCODE.NXDOMAIN, set()),
        ("example.com", "A", RCODE.NXDOMAIN, set()),
    ],
)
def test_answers(name: str, kind: str, code: int, values: set[str]) -> None:
    reply = ask(name, kind)
    assert reply.header.rcode == code
    assert {str(record.rdata) for record in reply.rr} == values


def test_nobody_may_remember_that_a_name_was_missing() -> None:
    (denial,) = ask("j-w-9.j.ns.svc.cluster.local").auth
    assert QTYPE[denial.rtype] == "SOA"
    assert denial.ttl == 0
    assert denial.rdata.times[-1] == 0


def test_an_answer_that_does_not_fit_is_asked_for_again_by_tcp() -> None:
    short = ask(SERVICE, peers=200)
    assert short.header.tc
    # What fits is there all the same: not every resolver tries TCP.
    assert 0 < len(short.rr) < 200
    assert len(short.pack()) <= 512
    assert len(ask(SERVICE, peers=200, tcp=True).rr) == 200


def test_a_resolver_that_takes_larger_packets_gets_them() -> None:
    assert ask(SERVICE, peers=40).header.tc
    larger = ask(SERVICE, peers=40, udp_size=4096)
    assert not larger.header.tc
    assert len(larger.rr) == 40


def test_more_pods_than_a_tcp_answer_holds_are_cut_not_lost_altogether() -> None:
    assert len(ask(SERVICE, peers=6000, tcp=True).rr) > 1000


def test_a_name_that_went_is_gone() -> None:
    made = table()
    made.apply(Update(removed=(Record(OWN, RecordKind.A, "10.128.0.2"),)))
    found = answer(DNSRecord.question(OWN).pack(), made)
    assert found is not None
    assert DNSRecord.parse(found).header.rcode == RCODE.NXDOMAIN


def _damaged() -> st.SearchStrategy[bytes]:
    query = DNSRecord.question(OWN)
    query.add_ar(EDNS0(udp_len=1232))
    whole = bytes(query.pack())

    def damage(changes: dict[int, int], length: int) -> bytes:
        packet = bytearray(whole)
        for at, value in changes.items():
            packet[at] = value
        return bytes(packet[:length])

    places = st.dictionaries(
        st.integers(0, len(whole) - 1), st.integers(0, 255), min_size=1, max_size=4
    )
    return st.builds(damage, places, st.integers(10, len(whole)))


@given(st.binary(max_size=600) | _damaged())
def test_no_packet_stops_the_server(packet: bytes) -> None:
    found = answer(packet, table())
    assert found is None or len(found) >= 12


def test_answers_are_not_answered() -> None:
    packet = bytearray(DNSRecord.question(OWN).pack())
    packet[2] |= 0x80
    assert answer(bytes(packet), table()) is None
