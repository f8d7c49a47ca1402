"""The pods' links: what gives the node and each pod its interface, routes and neighbours.

Pods are routed, not bridged: each has a veth pair whose ends carry /32 routes, so that every
packet between pods passes the node's forward hook, where policy is kept, with the addresses that
the pods see (no address translation, user cases P25 and P26). A bridge would need br_netfilter,
which not every kernel has.

Everything about a link follows from the pod's address (interface number, hardware addresses), so
nothing is read back from the kernel, and neighbour entries are permanent from the start: no ARP,
and no overflow of the machine-wide neighbour table near 1,000 pods (permanent entries are
exempt).

IPv6: eth0 has none, not even a link-local address, so that names of peers are never tried over a
network that leads nowhere; a pod's loopback keeps ::1, which programs bind to.

A pod costs 1.3 ms on two cores among the first 500, 1.8 near 1,000: 0.45 ms go to the namespace,
0.5 to the veth pair, 0.25 to all else here, 0.05 to two settings below /proc/sys, whose look-up
grows with the number of namespaces (0.3 near 1,000).
"""

import errno
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import msgspec

from vcjob.local.network import netlink
from vcjob.local.network.addresses import NODE_ADDRESS, POD_SUBNET
from vcjob.local.network.netlink import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    Netlink,
    NetlinkError,
    Request,
    attribute,
    nested,
    text,
    u32,
)
from vcjob.local.node import syscalls

MTU = 65535
POD_INTERFACE = "eth0"

_NETLINK_ROUTE = 0
_RTM_NEWLINK, _RTM_DELLINK, _RTM_GETLINK, _RTM_SETLINK = 16, 17, 18, 19
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
_RT_TABLE_MAIN, _RTPROT_STATIC, _RTN_UNICAST, _RTNH_F_ONLINK = 254, 4, 1, 4
_SCOPE_UNIVERSE, _SCOPE_LINK, _RT_SCOPE_NOWHERE = 0, 253, 255
_NDA_DST, _NDA_LLADDR, _NUD_PERMANENT = 1, 2, 0x80

_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NEIGHBOUR = struct.Struct("=BxxxiHBB")

_LOOPBACK = 1
_ETH0 = 2
# The kernel delays a link's carrier by up to a second where the numbers of the two ends of a veth
# pair are equal, so the node's numbers start above the pod's.
_FIRST_NODE_LINK = 16

# How long to wait for a link to carry packets. It takes some 50 µs.
_LINK_SECONDS = 5.0
_LINK_POLL_SECONDS = 0.0002


class PodLink(msgspec.Struct, frozen=True):
    """A pod's network: the descriptor of its namespace, and the node's end of its link."""

    namespace: int
    interface: int
    address: IPv4Address


class NodeNetwork:
    """The node's network namespace, which the thread that makes this is in and stays in.

    Raises NetlinkError or OSError for what the kernel refuses.
    """

    def __init__(self) -> None:
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._links = Netlink(_NETLINK_ROUTE)
        self._ping_groups = f"0 {_highest_group()}"
        self._has_ipv6 = os.path.exists("/proc/sys/net/ipv6")
        self._set_up()

    def _set_up(self) -> None:
        self._links.run(
            [
                _up(_LOOPBACK, "take the loopback interface up"),
                _address(_LOOPBACK, NODE_ADDRESS, "give the node its address"),
            ]
        )
        _write_setting("net/ipv4/ip_forward", "1")
        # A pod sends from its own address only: what comes from another link is dropped.
        _write_setting("net/ipv4/conf/all/rp_filter", "1")
        # No pod is told of a shorter way around the node: there is none.
        _write_setting("net/ipv4/conf/all/send_redirects", "0")
        _write_setting("net/ipv4/conf/default/send_redirects", "0")

    def add_pod(self, address: IPv4Address, group: int) -> PodLink:
        """Make a pod's namespace and its link; returns when the link carries packets.

        ``group`` is the interface group of the node's end. The thread is in the node's namespace
        again whatever happens, and nothing is left of a pod that could not be made.
        """
        index = _interface_of(address)
        namespace, pod_links = self._make_namespace()
        with pod_links:
            try:
                self._connect(index, address, group, namespace, pod_links)
            except BaseException:
                self._links.run([_delete(index)])
                os.close(namespace)
                raise
        return PodLink(namespace, index, address)

    def remove_pod(self, pod: PodLink) -> None:
        """Make a pod unreachable and let go of its namespace.

        The kernel takes the link away together with the namespace, many at a time and in the
        background (0.2 s for 200), as soon as the last process in it is gone. Deleting each link
        here would cost 22 ms a pod, nearly all of it waiting for the kernel's readers.
        """
        os.close(pod.namespace)
        self._links.run([_unreachable(pod.interface, pod.address)])

    def _make_namespace(self) -> tuple[int, Netlink]:
        with self._away():
            syscalls.unshare(syscalls.CLONE_NEWNET)
            namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                # As container runtimes do: the capability that ports below 1024 and ping ask for
                # is one over this namespace, which the pod's own user namespace does not own.
                _write_setting("net/ipv4/ip_unprivileged_port_start", "0")
                _write_setting("net/ipv4/ping_group_range", self._ping_groups)
                return namespace, Netlink(_NETLINK_ROUTE)
            except BaseException:
                os.close(namespace)
                raise

    @contextmanager
    def _away(self) -> Iterator[None]:
        """Return to the node's namespace at the end, whatever happened."""
        try:
            yield
        finally:
            syscalls.setns(self._home, syscalls.CLONE_NEWNET)

    def _connect(
        self, index: int, address: IPv4Address, group: int, namespace: int, pod_links: Netlink
    ) -> None:
        own, peer = _hardware(0x02, address), _hardware(0x06, address)
        prepared = [_no_ipv6(index)] if self._has_ipv6 else []
        self._links.run(
            [
                _veth(index, group, own, peer, namespace),
                *prepared,
                _up(index, "take the node's end of a pod's link up"),
                _neighbour(index, address, peer),
                _route(index, address, source=NODE_ADDRESS),
            ]
        )
        prepared = [_no_ipv6(_ETH0)] if self._has_ipv6 else []
        pod_links.run(
            [
                _up(_LOOPBACK, "take a pod's loopback interface up"),
                *prepared,
                _up(_ETH0, "take a pod's interface up"),
                _address(_ETH0, address, "give a pod its address"),
                _neighbour(_ETH0, NODE_ADDRESS, own),
                _route(_ETH0, NODE_ADDRESS),
                _route(_ETH0, None, gateway=NODE_ADDRESS),
            ]
        )
        _await_carrier(pod_links, _ETH0)
        _await_carrier(self._links, index)


def _interface_of(address: IPv4Address) -> int:
    return int(address) - int(POD_SUBNET.network_address) + _FIRST_NODE_LINK


def _hardware(prefix: int, address: IPv4Address) -> bytes:
    """A locally administered hardware address that holds the pod's address."""
    return bytes((prefix, 0)) + address.packed


def _await_carrier(links: Netlink, index: int) -> None:
    """Wait until a link is operational: before that the kernel drops packets silently.

    A look-up that loses its first packet stalls for the resolver's time-out.
    """
    question = Request("look at a link", _RTM_GETLINK, 0, _LINK.pack(0, 0, index, 0, 0))
    deadline = time.monotonic() + _LINK_SECONDS
    while True:
        answer = links.ask(question)
        state = dict(netlink.attributes(answer[_LINK.size :]))[_IFLA_OPERSTATE]
        if state[0] == _OPERATIONAL:
            return
        if time.monotonic() > deadline:
            raise NetlinkError("wait until a pod's link carries packets", errno.ETIMEDOUT)
        time.sleep(_LINK_POLL_SECONDS)


def _write_setting(name: str, value: str) -> None:
    """Write a kernel setting of the network namespace that this thread is in."""
    file = os.open(f"/proc/sys/{name}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, value.encode())
    finally:
        os.close(file)


def _highest_group() -> int:
    """The last of the group numbers from 0 that this user namespace has (2^31 - 1 at most)."""
    end = 0
    for line in sorted(Path("/proc/self/gid_map").read_text().splitlines(), key=_start):
        inside, _, count = (int(number) for number in line.split())
        if inside == end:
            end += count
    return min(max(end, 1), 1 << 31) - 1


def _start(line: str) -> int:
    return int(line.split()[0])


def _veth(index: int, group: int, own: bytes, peer: bytes, namespace: int) -> Request:
    other = _LINK.pack(0, 0, _ETH0, 0, 0) + b"".join(
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


def _no_ipv6(index: int) -> Request:
    mode = attribute(_IFLA_INET6_ADDR_GEN_MODE, bytes((_IN6_ADDR_GEN_MODE_NONE,)))
    payload = _LINK.pack(0, 0, index, 0, 0) + nested(_IFLA_AF_SPEC, nested(socket.AF_INET6, mode))
    return Request("keep IPv6 addresses off a link", _RTM_SETLINK, 0, payload)


def _up(index: int, step: str) -> Request:
    return Request(step, _RTM_SETLINK, 0, _LINK.pack(0, 0, index, _IFF_UP, _IFF_UP))


def _delete(index: int) -> Request:
    payload = _LINK.pack(0, 0, index, 0, 0)
    # There is none where the request that makes it was the one refused.
    return Request("remove a pod's link", _RTM_DELLINK, 0, payload, ignore=(errno.ENODEV,))


def _unreachable(index: int, address: IPv4Address) -> Request:
    payload = _ROUTE.pack(socket.AF_INET, 32, 0, 0, _RT_TABLE_MAIN, 0, _RT_SCOPE_NOWHERE, 0, 0)
    payload += u32(_RTA_OIF, index) + attribute(_RTA_DST, address.packed)
    gone = (errno.ESRCH, errno.ENODEV)  # with its namespace, already
    return Request("remove a pod's route", _RTM_DELROUTE, 0, payload, ignore=gone)


def _address(index: int, address: IPv4Address, step: str) -> Request:
    payload = _ADDRESS.pack(socket.AF_INET, 32, 0, _SCOPE_UNIVERSE, index)
    payload += attribute(_IFA_LOCAL, address.packed) + attribute(_IFA_ADDRESS, address.packed)
    return Request(step, _RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, payload)


def _neighbour(index: int, address: IPv4Address, hardware: bytes) -> Request:
    payload = _NEIGHBOUR.pack(socket.AF_INET, index, _NUD_PERMANENT, 0, 0)
    payload += attribute(_NDA_DST, address.packed) + attribute(_NDA_LLADDR, hardware)
    return Request("add a neighbour entry", _RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, payload)


def _route(
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
