"""nf_tables' expressions in the kernel's encoding: what a rule of the packet filter is made of.

Names and numbers are those of linux/netfilter/nf_tables.h. Registers hold four bytes each; what a
load leaves of them is zero.
"""

import struct
from ipaddress import IPv4Network

from vcjob.local.network.netlink import attribute, be32, nested, text

ACCEPT, DROP = 1, 0
JUMP, GOTO = -3, -4

REGISTER = 8
"""The first of the four-byte registers (NFT_REG32_00); the next ones follow in number."""

META_NFPROTO, META_L4PROTO, META_IIFGROUP, META_OIFGROUP = 15, 16, 21, 22
NETWORK, TRANSPORT = 1, 2
SOURCE_ADDRESS, DESTINATION_ADDRESS = 12, 16
SOURCE_PORT, DESTINATION_PORT = 0, 2
EQUAL, NOT_EQUAL = 0, 1

_LIST_ELEMENT = 1
_EXPRESSION_NAME, _EXPRESSION_DATA = 1, 2
_VERDICT_REGISTER = 0
_DATA_VALUE, _DATA_VERDICT = 1, 2
_VERDICT_CODE, _VERDICT_CHAIN = 1, 2
_DYNSET_UPDATE = 1


def value(kind: int, data: bytes) -> bytes:
    """An attribute with a value to compare with or to find in a set."""
    return nested(kind, attribute(_DATA_VALUE, data))


def verdict_data(kind: int, code: int, chain: str = "") -> bytes:
    """An attribute with a verdict, to a chain for JUMP and GOTO."""
    where = [text(_VERDICT_CHAIN, chain)] if chain else []
    code_data = attribute(_VERDICT_CODE, struct.pack("!i", code))
    return nested(kind, nested(_DATA_VERDICT, code_data, *where))


def _expression(name: str, *data: bytes) -> bytes:
    return nested(_LIST_ELEMENT, text(_EXPRESSION_NAME, name), nested(_EXPRESSION_DATA, *data))


def verdict(code: int, chain: str = "") -> bytes:
    """Decide for the packet."""
    return _expression("immediate", be32(1, _VERDICT_REGISTER), verdict_data(2, code, chain))


def load_meta(key: int, register: int = REGISTER) -> bytes:
    """Load what the kernel knows of the packet beside its content."""
    return _expression("meta", be32(1, register), be32(2, key))


def load(base: int, offset: int, length: int, register: int = REGISTER) -> bytes:
    """Load bytes of the packet's NETWORK or TRANSPORT header; no match where there are none."""
    return _expression(
        "payload", be32(1, register), be32(2, base), be32(3, offset), be32(4, length)
    )


def compare(data: bytes, operator: int = EQUAL) -> bytes:
    """Go on where the register holds ``data``, or, with NOT_EQUAL, where it does not."""
    return _expression("cmp", be32(1, REGISTER), be32(2, operator), value(3, data))


def between(first: bytes, last: bytes) -> bytes:
    """Go on where the register holds one from ``first`` to ``last``."""
    return _expression("range", be32(1, REGISTER), be32(2, EQUAL), value(3, first), value(4, last))


def mask(data: bytes) -> bytes:
    """Keep only the bits that ``data`` has."""
    return _expression(
        "bitwise",
        be32(1, REGISTER),
        be32(2, REGISTER),
        be32(3, len(data)),
        value(4, data),
        value(5, bytes(len(data))),
    )


def find(name: str) -> bytes:
    """Go on where the registers hold a key of the set."""
    return _expression("lookup", text(1, name), be32(2, REGISTER))


def decide_by(name: str) -> bytes:
    """Decide as the map says for the key in the registers; go on where it has none."""
    return _expression("lookup", text(1, name), be32(2, REGISTER), be32(3, _VERDICT_REGISTER))


def remember(name: str) -> bytes:
    """Add the key in the registers to the set, or start its time anew.

    The next expression is reached also where the set was full.
    """
    return _expression("dynset", text(1, name), be32(3, _DYNSET_UPDATE), be32(4, REGISTER))


def is_protocol(number: int) -> bytes:
    """Go on for packets of an IP protocol."""
    return load_meta(META_L4PROTO) + compare(bytes((number,)))


def in_network(network: str, offset: int, operator: int = EQUAL) -> bytes:
    """Go on where the address at ``offset`` is (not) in a network; "" for an IPv6 network."""
    parsed = IPv4Network(network, strict=False)
    return (
        load(NETWORK, offset, 4)
        + mask(parsed.netmask.packed)
        + compare(parsed.network_address.packed, operator)
    )
