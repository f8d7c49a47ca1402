"""The pods' links: what gives the node and each pod its interface, routes and neighbours.

Pods are routed, not bridged: each has a veth pair whose ends carry /32 routes, so that every
packet between pods passes the node's forward hook, where policy is kept, with the addresses that
the pods see (no address translation, user cases P25 and P26). A bridge would need br_netfilter,
which not every kernel has.

Everything about a link follows from the pod's address (interface number, hardware addresses), so
nothing is read back from the kernel, and neighbour entries are permanent from the start: no ARP,
and no overflow of the machine-wide neighbour table near 1,000 pods (Linux exempts permanent
entries since 5.0).

IPv6: eth0 has none, not even a link-local address, so that names of peers are never tried over a
network that leads nowhere; a pod's loopback keeps ::1, which programs bind to.

A pod costs 1.3 ms on two cores among the first 500, 1.8 near 1,000: 0.45 ms go to the namespace,
0.5 to the veth pair, 0.25 to all else here, 0.05 to two settings below /proc/sys, whose look-up
grows with the number of namespaces (0.3 near 1,000).
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import msgspec

from vcjob.local.network.addresses import NODE_ADDRESS, POD_SUBNET
from vcjob.local.network.netlink import Netlink, NetlinkError
from vcjob.local.network.rtnetlink import (
    ETH0,
    NETLINK_ROUTE,
    add_address,
    add_neighbour,
    add_route,
    delete_route,
    is_operational,
    keep_ipv6_off,
    look_at_link,
    make_veth,
    take_up,
)
from vcjob.local.node import syscalls

_LOOPBACK = 1
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
        self._links = Netlink(NETLINK_ROUTE)
        self._ping_groups = f"0 {_highest_group()}"
        self._has_ipv6 = os.path.exists("/proc/sys/net/ipv6")
        self._set_up()

    def _set_up(self) -> None:
        self._links.run(
            [
                take_up(_LOOPBACK, "take the loopback interface up"),
                add_address(_LOOPBACK, NODE_ADDRESS, "give the node its address"),
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
        again whatever happens; of a pod that could not be made nothing stays, since a link goes
        with its namespace.
        """
        index = _interface_of(address)
        namespace, pod_links = self._make_namespace()
        with pod_links:
            try:
                self._connect(index, address, group, namespace, pod_links)
            except BaseException:
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
        self._links.run([delete_route(pod.interface, pod.address)])

    def _make_namespace(self) -> tuple[int, Netlink]:
        with self._away():
            syscalls.unshare(syscalls.CLONE_NEWNET)
            namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                # As container runtimes do: the capability that ports below 1024 and ping ask for
                # is one over this namespace, which the pod's own user namespace does not own.
                _write_setting("net/ipv4/ip_unprivileged_port_start", "0")
                _write_setting("net/ipv4/ping_group_range", self._ping_groups)
                return namespace, Netlink(NETLINK_ROUTE)
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
        prepared = [keep_ipv6_off(index)] if self._has_ipv6 else []
        self._links.run(
            [
                make_veth(index, group, own, peer, namespace),
                *prepared,
                take_up(index, "take the node's end of a pod's link up"),
                add_neighbour(index, address, peer),
                add_route(index, address, source=NODE_ADDRESS),
            ]
        )
        prepared = [keep_ipv6_off(ETH0)] if self._has_ipv6 else []
        pod_links.run(
            [
                take_up(_LOOPBACK, "take a pod's loopback interface up"),
                *prepared,
                take_up(ETH0, "take a pod's interface up"),
                add_address(ETH0, address, "give a pod its address"),
                add_neighbour(ETH0, NODE_ADDRESS, own),
                add_route(ETH0, NODE_ADDRESS),
                add_route(ETH0, None, gateway=NODE_ADDRESS),
            ]
        )
        _await_carrier(pod_links, ETH0)
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
    deadline = time.monotonic() + _LINK_SECONDS
    while not is_operational(links.ask(look_at_link(index))):
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
