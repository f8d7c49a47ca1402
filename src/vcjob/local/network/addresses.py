"""The pods' subnet and who has which address in it. Every number of the network stands here."""

import heapq
from collections import deque
from ipaddress import IPv4Address, IPv4Network

from vcjob.api.errors import VcjobError

POD_SUBNET = IPv4Network("10.128.0.0/14")
"""The pods' addresses: 262,141 of them. Nothing outside the pods' world ever sees one."""

NODE_ADDRESS = POD_SUBNET[1]
"""The node's own address: the pods' gateway, the source of probes, the name server."""

_FIRST_POD = 2
_QUARANTINE = 1024

MOST_PODS = POD_SUBNET.num_addresses - 1 - _FIRST_POD
"""How many pods can have an address at the same time."""


class SubnetFull(VcjobError):
    """Every pod address is taken."""


class AddressPool:
    """Gives out pod addresses, the lowest free one first.

    A released address rests until ``quarantine`` further ones were released, because programs
    and name caches may still hold it; it comes back earlier only when nothing else is free.
    """

    def __init__(self, subnet: IPv4Network = POD_SUBNET, quarantine: int = _QUARANTINE) -> None:
        self._subnet = subnet
        self._quarantine = quarantine
        self._next = _FIRST_POD
        self._end = subnet.num_addresses - 1
        self._free: list[int] = []
        self._resting: deque[int] = deque()
        self._taken: set[int] = set()

    def take(self) -> IPv4Address:
        """An address for a new pod; raises SubnetFull."""
        if self._free:
            number = heapq.heappop(self._free)
        elif self._next < self._end:
            number = self._next
            self._next += 1
        elif self._resting:
            number = self._resting.popleft()
        else:
            raise SubnetFull(f"all {len(self._taken)} pod addresses of {self._subnet} are taken")
        self._taken.add(number)
        return self._subnet[number]

    def release(self, address: IPv4Address) -> None:
        """Give a pod's address back; one that is not taken is ignored."""
        number = int(address) - int(self._subnet.network_address)
        if number not in self._taken:
            return
        self._taken.remove(number)
        self._resting.append(number)
        if len(self._resting) > self._quarantine:
            heapq.heappush(self._free, self._resting.popleft())
