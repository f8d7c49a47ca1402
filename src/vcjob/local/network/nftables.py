"""The packet filter in the kernel: its frame, and changes of it as one transaction each.

Own code over nfnetlink, because pyroute2 0.9.7 fails at sets and the program ``nft`` costs a
process of 5 ms for each change, where it is installed at all. Here a new pod takes 0.02 ms, a
Job's policy 0.1, and 10,000 elements at once 60.

The frame, table ``vcjob`` of the inet family, hooks where the node forwards between pods. So it
never concerns traffic of the node itself (probes, the name server), as Kubernetes wants it.

It keeps no connections (conntrack), because that table is bounded by a setting of the machine
(``nf_conntrack_max``) that a namespace cannot raise and every look-up would fill, and because
its module is not loaded everywhere. Instead:

* TCP: only what opens a connection (SYN without ACK) is decided on. Without it there is none.
* ICMP: only echo requests are.
* UDP and SCTP: what was allowed is remembered for some minutes, both ways, so that replies pass.
"""

import struct
from ipaddress import IPv4Address
from socket import IPPROTO_ICMP, IPPROTO_SCTP, IPPROTO_TCP, IPPROTO_UDP
from typing import assert_never

import msgspec

from vcjob.local.network import expressions as nft
from vcjob.local.network.netlink import Netlink, Request, attribute, be32, nested, text
from vcjob.local.network.rules import (
    GROUP_MAPS,
    POD_MAPS,
    Allow,
    Block,
    Chain,
    Direction,
    Element,
    Key,
    Members,
    Peer,
    PodChain,
    PolicyChain,
    Ports,
    SetKind,
    Update,
)

_NETLINK_NETFILTER = 12
_SUBSYSTEM = 10 << 8
_NEWTABLE, _NEWCHAIN, _DELCHAIN, _NEWRULE, _DELRULE = 0, 3, 5, 6, 8
_NEWSET, _DELSET, _NEWSETELEM, _DELSETELEM = 9, 11, 12, 14
_GENERAL = struct.Struct("!BBH")
_NFPROTO_INET, _NFPROTO_IPV4 = 1, 2
_CREATE, _APPEND = 0x400, 0x800
_NF_INET_FORWARD = 2
_SET_MAP, _SET_TIMEOUT, _SET_EVAL = 0x8, 0x10, 0x20
_DATA_TYPE_VERDICT = 0xFFFFFF00
_KEY_LENGTH = {SetKind.GROUPS: 4, SetKind.ADDRESSES: 4, SetKind.PORTS: 8}

TABLE = "vcjob"
_FORWARD, _KNOWN, _TO_POD, _ALLOWED = "forward", "known", "to_pod", "allowed"
_FLOWS, _FLOW_LENGTH, _FLOW_MILLISECONDS, _MOST_FLOWS = "flows", 20, 180_000, 1 << 18
_ECHO_REQUEST = 8
_SYN, _SYN_ACK = 0x02, 0x12
_TCP_FLAGS = 13


class PacketFilter:
    """The filter of the network namespace it is made in. Everything may raise NetlinkError."""

    def __init__(self) -> None:
        self._netlink = Netlink(_NETLINK_NETFILTER)
        self._decode = msgspec.msgpack.Decoder(Update).decode
        self._netlink.transact(_frame())

    def apply(self, update: bytes) -> None:
        """Make a change that ``encode_update`` wrote; all of it or nothing (see Netlink)."""
        self._netlink.transact(_requests(self._decode(update)))


def encode_update(update: Update) -> bytes:
    """The form in which an update travels to the node."""
    return msgspec.msgpack.encode(update)


def _requests(update: Update) -> list[Request]:
    requests = [_set(name, kind) for name, kind in update.new_sets]
    requests += [_chain(name) for name, _ in update.new_chains]
    for name, chain in update.new_chains:
        requests += [_rule(name, rule) for rule in _rules(chain)]
    requests += _elements(_DELSETELEM, update.gone_elements)
    requests += _elements(_NEWSETELEM, update.new_elements)
    for name in update.gone_chains:
        requests.append(_message(_DELRULE, "empty a chain", text(1, TABLE), text(2, name)))
    for name in update.gone_chains:
        requests.append(_message(_DELCHAIN, "remove a chain", text(1, TABLE), text(3, name)))
    for name in update.gone_sets:
        requests.append(_message(_DELSET, "remove a set", text(1, TABLE), text(2, name)))
    return requests


def _frame() -> list[Request]:
    requests = [
        _message(_NEWTABLE, "make the packet filter (nf_tables)", text(1, TABLE), flags=_CREATE),
        _flows(),
    ]
    for maps, kind in ((POD_MAPS, SetKind.ADDRESSES), (GROUP_MAPS, SetKind.GROUPS)):
        requests += [_set(name, kind, verdicts=True) for name in maps.values()]
    hook = nested(4, be32(1, _NF_INET_FORWARD), be32(2, 0))
    requests.append(_chain(_FORWARD, hook, text(7, "filter")))
    requests += [_chain(name) for name in (_KNOWN, _TO_POD, _ALLOWED)]
    source = nft.load(nft.NETWORK, nft.SOURCE_ADDRESS, 4)
    destination = nft.load(nft.NETWORK, nft.DESTINATION_ADDRESS, 4)
    there, back = _flow(reverse=False), _flow(reverse=True)
    remembered = there + nft.remember(_FLOWS) + back + nft.remember(_FLOWS)
    rules = {
        _FORWARD: [
            nft.load_meta(nft.META_NFPROTO)
            + nft.compare(bytes((_NFPROTO_IPV4,)), nft.NOT_EQUAL)
            + nft.verdict(nft.DROP),
            nft.is_protocol(IPPROTO_TCP)
            + nft.load(nft.TRANSPORT, _TCP_FLAGS, 1)
            + nft.mask(bytes((_SYN_ACK,)))
            + nft.compare(bytes((_SYN,)), nft.NOT_EQUAL)
            + nft.verdict(nft.ACCEPT),
            nft.is_protocol(IPPROTO_ICMP)
            + nft.load(nft.TRANSPORT, 0, 1)
            + nft.compare(bytes((_ECHO_REQUEST,)), nft.NOT_EQUAL)
            + nft.verdict(nft.ACCEPT),
            nft.is_protocol(IPPROTO_UDP) + nft.verdict(nft.JUMP, _KNOWN),
            nft.is_protocol(IPPROTO_SCTP) + nft.verdict(nft.JUMP, _KNOWN),
            source + nft.decide_by(POD_MAPS[Direction.EGRESS]),
            nft.load_meta(nft.META_IIFGROUP) + nft.decide_by(GROUP_MAPS[Direction.EGRESS]),
            nft.verdict(nft.GOTO, _TO_POD),
        ],
        _KNOWN: [
            there + nft.find(_FLOWS) + nft.remember(_FLOWS) + nft.verdict(nft.ACCEPT),
        ],
        _TO_POD: [
            destination + nft.decide_by(POD_MAPS[Direction.INGRESS]),
            nft.load_meta(nft.META_OIFGROUP) + nft.decide_by(GROUP_MAPS[Direction.INGRESS]),
            nft.verdict(nft.GOTO, _ALLOWED),
        ],
        _ALLOWED: [
            nft.is_protocol(IPPROTO_UDP) + remembered,
            nft.is_protocol(IPPROTO_SCTP) + remembered,
            nft.verdict(nft.ACCEPT),
        ],
    }  # fmt: skip
    requests += [_rule(chain, rule) for chain, all_of in rules.items() for rule in all_of]
    return requests


def _flow(*, reverse: bool) -> bytes:
    """Load the key of a flow: protocol, addresses and ports, the other way round if told."""
    addresses = [nft.SOURCE_ADDRESS, nft.DESTINATION_ADDRESS]
    ports = [nft.SOURCE_PORT, nft.DESTINATION_PORT]
    if reverse:
        addresses.reverse()
        ports.reverse()
    first = nft.REGISTER
    return (
        nft.load_meta(nft.META_L4PROTO, first)
        + nft.load(nft.NETWORK, addresses[0], 4, first + 1)
        + nft.load(nft.NETWORK, addresses[1], 4, first + 2)
        + nft.load(nft.TRANSPORT, ports[0], 2, first + 3)
        + nft.load(nft.TRANSPORT, ports[1], 2, first + 4)
    )


def _rules(chain: Chain) -> list[bytes]:
    match chain:
        case PodChain(_, policies):
            jumps = [nft.verdict(nft.JUMP, policy) for policy in policies]
            return [*jumps, nft.verdict(nft.DROP)]
        case PolicyChain(direction, rules):
            return [_allow(rule, direction) for rule in rules]
    assert_never(chain)


def _allow(rule: Allow, direction: Direction) -> bytes:
    ingress = direction is Direction.INGRESS
    # Who may send has still to be received.
    verdict = nft.verdict(nft.GOTO, _ALLOWED if ingress else _TO_POD)
    return _peer(rule.peer, ingress) + _ports(rule.ports) + verdict


def _peer(peer: Peer | None, ingress: bool) -> bytes:
    offset = nft.SOURCE_ADDRESS if ingress else nft.DESTINATION_ADDRESS
    match peer:
        case None:
            return b""
        case Members(name, SetKind.GROUPS):
            group = nft.load_meta(nft.META_IIFGROUP if ingress else nft.META_OIFGROUP)
            return group + nft.find(name)
        case Members(name):
            return nft.load(nft.NETWORK, offset, 4) + nft.find(name)
        case Block(network, excluded):
            apart = [nft.in_network(one, offset, nft.NOT_EQUAL) for one in excluded]
            return nft.in_network(network, offset) + b"".join(apart)
    assert_never(peer)


def _ports(ports: Ports | None) -> bytes:
    if ports is None:
        return b""
    protocol = nft.is_protocol(ports.protocol)
    if ports.named:
        return (
            protocol
            + nft.load(nft.NETWORK, nft.DESTINATION_ADDRESS, 4)
            + nft.load(nft.TRANSPORT, nft.DESTINATION_PORT, 2, nft.REGISTER + 1)
            + nft.find(ports.named)
        )
    if not ports.first:
        return protocol
    port = nft.load(nft.TRANSPORT, nft.DESTINATION_PORT, 2)
    first, last = (struct.pack("!H", number) for number in (ports.first, ports.last))
    return protocol + port + (nft.compare(first) if first == last else nft.between(first, last))


def _key(key: Key) -> bytes:
    match key:
        case int():
            return struct.pack("=I", key)
        case str():
            return IPv4Address(key).packed
        case (address, port):
            return IPv4Address(address).packed + struct.pack("!HH", port, 0)
    assert_never(key)


# A set's elements go in pieces, since an attribute's length has sixteen bits.
_MOST_ELEMENTS = 400


def _elements(kind: int, elements: tuple[Element, ...]) -> list[Request]:
    by_set: dict[str, list[bytes]] = {}
    for element in elements:
        encoded = nft.value(1, _key(element.key))
        if element.chain and kind == _NEWSETELEM:
            encoded += nft.verdict_data(2, nft.GOTO, element.chain)
        by_set.setdefault(element.set, []).append(nested(1, encoded))
    return [
        _message(
            kind,
            "change a set of the packet filter",
            text(1, TABLE),
            text(2, name),
            nested(3, *encoded[at : at + _MOST_ELEMENTS]),
            flags=_CREATE if kind == _NEWSETELEM else 0,
        )
        for name, encoded in by_set.items()
        for at in range(0, len(encoded), _MOST_ELEMENTS)
    ]


def _set(name: str, kind: SetKind, *, verdicts: bool = False) -> Request:
    data = (be32(6, _DATA_TYPE_VERDICT), be32(7, 0)) if verdicts else ()
    return _new_set(name, _SET_MAP if verdicts else 0, _KEY_LENGTH[kind], *data)


def _flows() -> Request:
    timeout = attribute(11, struct.pack("!Q", _FLOW_MILLISECONDS))
    size = nested(9, be32(1, _MOST_FLOWS))
    return _new_set(_FLOWS, _SET_TIMEOUT | _SET_EVAL, _FLOW_LENGTH, size, timeout)


def _new_set(name: str, flags: int, key_length: int, *more: bytes) -> Request:
    return _message(
        _NEWSET,
        "make a set of the packet filter",
        text(1, TABLE),
        text(2, name),
        be32(3, flags),
        be32(4, 0),
        be32(5, key_length),
        *more,
        # Tells sets apart that are made and used in one transaction by number; we use names.
        be32(10, 1),
        flags=_CREATE,
    )


def _chain(name: str, *hook: bytes) -> Request:
    return _message(
        _NEWCHAIN, "make a chain of the packet filter", text(1, TABLE), text(3, name), *hook,
        flags=_CREATE,
    )  # fmt: skip


def _rule(chain: str, content: bytes) -> Request:
    return _message(
        _NEWRULE, "make a rule of the packet filter", text(1, TABLE), text(2, chain),
        nested(4, content), flags=_CREATE | _APPEND,
    )  # fmt: skip


def _message(kind: int, step: str, *content: bytes, flags: int = 0) -> Request:
    payload = _GENERAL.pack(_NFPROTO_INET, 0, 0) + b"".join(content)
    return Request(step, _SUBSYSTEM | kind, flags, payload)
