"""What the name server answers: pure functions from a table of records and a packet to a packet.

Authoritative for everything, because pods reach nothing outside: a name that is not in the table
does not exist. (A look-up that was passed on to this machine's resolver would be of no use to a
pod, and a way out for what it knows.)

A time to live of zero and a negative one of zero keep every resolver from remembering a miss: a
peer that starts a moment later is found by the next look-up (P11). Sources: RFC 1035, 2308 (no
data), 6891 (EDNS), 7766 (TCP).
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from dnslib import CLASS, EDNS0, PTR, QTYPE, RCODE, RR, SOA, SRV, A, DNSHeader, DNSRecord
from dnslib.dns import DNSError

from vcjob.local.names.records import Record, RecordKind, Update

_TTL = 0
_LARGEST_UDP = 1232
_PLAIN_UDP = 512
_MOST_TCP = 65535
_ZONE_OF_DENIALS = "cluster.local"
_ANY_CLASS = 255
_OPT = 41
_ANY_CLASS = 255
_SMALLEST_RECORD = 16
"""A name given as a reference to the question (2), type, class, time to live, length, IPv4 (14)."""


class Table:
    """The records that are there, found by name."""

    def __init__(self) -> None:
        self._records: dict[str, dict[RecordKind, dict[str, None]]] = {}
        self._existing: dict[str, int] = {}

    def apply(self, update: Update) -> None:
        """Take an update of ``records.Zone``."""
        for record in update.removed:
            self._remove(record)
        for record in update.added:
            self._add(record)
        for name in update.services_removed:
            self._exists(name, -1)
        for name in update.services_added:
            self._exists(name, 1)

    def find(self, name: str, kind: RecordKind) -> Iterable[str]:
        """The values of the records of a name."""
        return self._records.get(name, {}).get(kind, {})

    def has_name(self, name: str) -> bool:
        """Whether the name or one below it has records of any kind."""
        return name in self._existing

    def _add(self, record: Record) -> None:
        values = self._records.setdefault(record.name, {}).setdefault(record.kind, {})
        if record.value not in values:
            values[record.value] = None
            self._exists(record.name, 1)

    def _remove(self, record: Record) -> None:
        kinds = self._records.get(record.name, {})
        values = kinds.get(record.kind, {})
        if record.value not in values:
            return
        del values[record.value]
        self._exists(record.name, -1)
        if not values:
            del kinds[record.kind]
        if not kinds:
            del self._records[record.name]

    def _exists(self, name: str, change: int) -> None:
        """Count the name and those above it: an empty name above a full one exists (RFC 8020)."""
        while name:
            count = self._existing.get(name, 0) + change
            if count > 0:
                self._existing[name] = count
            else:
                self._existing.pop(name, None)
            name = name.partition(".")[2]


def answer(packet: bytes, table: Table, *, tcp: bool = False) -> bytes | None:
    """The answer to a query, None for what deserves none (no query, or not readable at all)."""
    try:
        query = DNSRecord.parse(packet)
    except (DNSError, ValueError, IndexError, UnicodeError):
        return _not_readable(packet)
    if query.header.qr:
        return None
    if query.header.opcode != 0 or len(query.questions) != 1:
        return bytes(_reply(query, RCODE.NOTIMP).pack())
    question = query.q
    if question.qclass not in (CLASS.IN, _ANY_CLASS):
        return bytes(_reply(query, RCODE.REFUSED).pack())
    name = str(question.qname).rstrip(".").lower()
    reply = _reply(query, RCODE.NOERROR)
    limit = _MOST_TCP if tcp else _udp_limit(query)
    # One more than can fit at best shows that some are left out, without packing thousands.
    for record in islice(_found(table, name, question.qtype), limit // _SMALLEST_RECORD + 1):
        # The name is given back as it was asked for: some resolvers mix its letters' case.
        reply.add_answer(RR(question.qname, record[0], ttl=_TTL, rdata=record[1]))
    if not reply.rr:
        if not table.has_name(name):
            reply.header.rcode = RCODE.NXDOMAIN
        reply.add_auth(
            RR(
                _ZONE_OF_DENIALS,
                QTYPE.SOA,
                ttl=_TTL,
                rdata=SOA("ns." + _ZONE_OF_DENIALS, "root." + _ZONE_OF_DENIALS, (1, 1, 1, 1, 0)),
            )
        )
    return _packed(reply, limit, tcp=tcp)


def _found(table: Table, name: str, kind: int) -> Iterator[tuple[int, A | PTR | SRV]]:
    if kind in (QTYPE.A, QTYPE.ANY):
        for address in table.find(name, RecordKind.A):
            yield QTYPE.A, A(address)
    if kind in (QTYPE.PTR, QTYPE.ANY):
        for target in table.find(name, RecordKind.PTR):
            yield QTYPE.PTR, PTR(target)
    if kind in (QTYPE.SRV, QTYPE.ANY):
        for value in table.find(name, RecordKind.SRV):
            port, _, target = value.partition(" ")
            yield QTYPE.SRV, SRV(0, 100, int(port), target)


def _reply(query: DNSRecord, code: int) -> DNSRecord:
    header = DNSHeader(
        id=query.header.id, qr=1, aa=1, rd=query.header.rd, ra=1, opcode=query.header.opcode
    )
    header.rcode = code
    reply = DNSRecord(header, questions=query.questions)
    if any(extra.rtype == _OPT for extra in query.ar):
        reply.add_ar(EDNS0(udp_len=_LARGEST_UDP))
    return reply


def _udp_limit(query: DNSRecord) -> int:
    sizes = [int(extra.rclass) for extra in query.ar if extra.rtype == _OPT]
    return min(max(sizes[0], _PLAIN_UDP), _LARGEST_UDP) if sizes else _PLAIN_UDP


def _packed(reply: DNSRecord, limit: int, *, tcp: bool) -> bytes:
    """The reply with the records that fit; marked where some do not, so that TCP is tried.

    Those that fit stand in it, because not every resolver tries TCP (musl's did not for long). Over
    TCP there is nothing further to try: of more than 4,000 pods one look-up shows so many.
    """
    packed: bytes = reply.pack()
    while len(packed) > limit:
        reply.header.tc = 0 if tcp else 1
        kept = min(len(reply.rr) * limit // len(packed), len(reply.rr) - 1)
        reply.rr = reply.rr[: max(kept, 0)]
        if not reply.rr:
            reply.auth = []
        packed = reply.pack()
    return packed


def _not_readable(packet: bytes) -> bytes | None:
    """FORMERR where at least an identifier and "this is a query" could be read."""
    if len(packet) < 12 or packet[2] & 0x80:
        return None
    header = DNSHeader(id=int.from_bytes(packet[:2], "big"), qr=1, rd=0, ra=1)
    header.rcode = RCODE.FORMERR
    formerr: bytes = DNSRecord(header).pack()
    return formerr
