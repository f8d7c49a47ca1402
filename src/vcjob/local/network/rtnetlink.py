"""Requests to rtnetlink(7): links, addresses, neighbours and routes of the pods' network."""

import errno
import socket
import struct
from ipaddress import IPv4Address

from vcjob.local.network.netlink import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    Request,
    attribute,
    attributes,
    nested,
    text,
    u32,
)

MTU = 65535
POD_INTERFACE = "eth0"
ETH0 = 2
"""The number of a pod's interface, after its loopback."""

NETLINK_ROUTE = 0
_RTM_NEWLINK, _RTM_GETLINK, _RTM_SETLINK = 16, 18, 19
_RTM_NEWADDR, _RTM_NEWROUTE, _RTM_DELROUTE, _RTM_NEWNEIGH = 20, 24, 25, 28

_IFF_UP = 0x1
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU = 1, 3, 4
_IFLA_OPERSTATE, _IFLA_LINKINFO = 16, 18
_IFLA_AF_SPEC, _IFLA_GROUP, _IFLA_NET_NS_FD = 26, 27, 28
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFLA_INET6_ADDR_GEN_MODE, _IN6_ADDR_GEN_MODE_NONE = 8, 1
_OPERATIONAL = 6

_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC = 1, 4, 5, 7
_RT_TABLE_MAIN, _RTPROT_STATIC, _RTN_UNICAST = 254, 4, 1
_SCOPE_UNIVERSE, _SCOPE_LINK, _SCOPE_NOWHERE = 0, 253, 255
_NDA_DST, _NDA_LLADDR, _NUD_PERMANENT = 1, 2, 0x80

_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NEIGHBOUR = struct.Struct("=BxxxiHBB")


def look_at_link(index: int) -> Request:
    """Ask what a link is like."""
    return Request("look at a link", _RTM_GETLINK, 0, _LINK.pack(0, 0, index, 0, 0))


def is_operational(answer: bytes) -> bool:
    """Whether a link, as look_at_link was answered, carries packets."""
    state = dict(attributes(answer[_LINK.size :]))[_IFLA_OPERSTATE]
    return state[0] == _OPERATIONAL


def make_veth(index: int, group: int, own: bytes, peer: bytes, namespace: int) -> Request:
    """Make a pair: the node's end ``index`` in ``group``, the pod's eth0 in ``namespace``.

    ``own`` and ``peer`` are the hardware addresses of the two.
    """
    other = _LINK.pack(0, 0, ETH0, 0, 0) + b"".join(
        (
            text(_IFLA_IFNAME, POD_INTERFACE),
            u32(_IFLA_MTU, MTU),
            attribute(_IFLA_ADDRESS, peer),
            u32(_IFLA_NET_NS_FD, namespace),
        )
    )
    payload = _LINK.pack(0, 0, index, 0, 0) + b"".join(
        (
            text(_IFLA_IFNAME, f"pod{index}"),
            u32(_IFLA_MTU, MTU),
            attribute(_IFLA_ADDRESS, own),
            u32(_IFLA_GROUP, group),
            nested(
                _IFLA_LINKINFO,
                text(_IFLA_INFO_KIND, "veth"),
                nested(_IFLA_INFO_DATA, nested(_VETH_INFO_PEER, other)),
            ),
        )
    )
    return Request("make a pod's link (veth)", _RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, payload)


def keep_ipv6_off(index: int) -> Request:
    """Give a link no IPv6 address of its own accord. Before it is taken up."""
    mode = attribute(_IFLA_INET6_ADDR_GEN_MODE, bytes((_IN6_ADDR_GEN_MODE_NONE,)))
    payload = _LINK.pack(0, 0, index, 0, 0) + nested(_IFLA_AF_SPEC, nested(socket.AF_INET6, mode))
    return Request("keep IPv6 addresses off a link", _RTM_SETLINK, 0, payload)


def take_up(index: int, step: str) -> Request:
    """Let a link carry packets."""
    return Request(step, _RTM_SETLINK, 0, _LINK.pack(0, 0, index, _IFF_UP, _IFF_UP))


def delete_route(index: int, address: IPv4Address) -> Request:
    """Remove the route to an address over a link, which may be gone with it."""
    payload = _ROUTE.pack(socket.AF_INET, 32, 0, 0, _RT_TABLE_MAIN, 0, _SCOPE_NOWHERE, 0, 0)
    payload += u32(_RTA_OIF, index) + attribute(_RTA_DST, address.packed)
    gone = (errno.ESRCH, errno.ENODEV)  # with its namespace, already
    return Request("remove a pod's route", _RTM_DELROUTE, 0, payload, ignore=gone)


def add_address(index: int, address: IPv4Address, step: str) -> Request:
    """Give a link an address."""
    payload = _ADDRESS.pack(socket.AF_INET, 32, 0, _SCOPE_UNIVERSE, index)
    payload += attribute(_IFA_LOCAL, address.packed) + attribute(_IFA_ADDRESS, address.packed)
    return Request(step, _RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, payload)


def add_neighbour(index: int, address: IPv4Address, hardware: bytes) -> Request:
    """Say for ever which hardware address an address has."""
    payload = _NEIGHBOUR.pack(socket.AF_INET, index, _NUD_PERMANENT, 0, 0)
    payload += attribute(_NDA_DST, address.packed) + attribute(_NDA_LLADDR, hardware)
    return Request("add a neighbour entry", _RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, payload)


def add_route(
    index: int,
    address: IPv4Address | None,
    gateway: IPv4Address | None = None,
    source: IPv4Address | None = None,
) -> Request:
    """A route to ``address``, to everywhere without one."""
    payload = _ROUTE.pack(
        socket.AF_INET,
        32 if address else 0,
        0,
        0,
        _RT_TABLE_MAIN,
        _RTPROT_STATIC,
        _SCOPE_UNIVERSE if gateway else _SCOPE_LINK,
        _RTN_UNICAST,
        0,
    ) + u32(_RTA_OIF, index)
    if address:
        payload += attribute(_RTA_DST, address.packed)
    if gateway:
        payload += attribute(_RTA_GATEWAY, gateway.packed)
    if source:
        payload += attribute(_RTA_PREFSRC, source.packed)
    return Request("add a route", _RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, payload)
