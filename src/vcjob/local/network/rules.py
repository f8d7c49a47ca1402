"""The packet filter as data: what policy.py compiles to and nftables.py writes into the kernel.

The filter is a fixed frame, made once by nftables.py, and four maps that lead from a pod's
address or its link's group to the chain that decides for it. A change is an ``Update``: only what
is new or gone, applied whole or not at all.
"""

from enum import StrEnum

import msgspec


class Direction(StrEnum):
    """Which side of a connection a chain decides for: its end (ingress) or its start (egress)."""

    INGRESS = "ingress"
    EGRESS = "egress"


class SetKind(StrEnum):
    """What the keys of a set are."""

    GROUPS = "groups"
    """Numbers of interface groups (int)."""
    ADDRESSES = "addresses"
    """IPv4 addresses (str)."""
    PORTS = "ports"
    """Address and port of a pod (str, int)."""


Key = int | str | tuple[str, int]

POD_MAPS = {
    Direction.INGRESS: "ingress_pods",
    Direction.EGRESS: "egress_pods",
}
"""From a pod's address to its chain; decides before the map of groups."""

GROUP_MAPS = {
    Direction.INGRESS: "ingress_groups",
    Direction.EGRESS: "egress_groups",
}
"""From a group to the chain of its pods."""


class Members(msgspec.Struct, frozen=True, tag=True):
    """The peer is in a set of groups or addresses."""

    set: str
    kind: SetKind


class Block(msgspec.Struct, frozen=True, tag=True):
    """The peer's address is in ``network`` but in none of ``excluded`` (CIDR)."""

    network: str
    excluded: tuple[str, ...] = ()


Peer = Members | Block


class Ports(msgspec.Struct, frozen=True):
    """The packet's protocol (its IP number), and its destination port.

    That is one from ``first`` to ``last``, or one in the set ``named``; any if neither is given.
    """

    protocol: int
    first: int = 0
    last: int = 0
    named: str = ""


class Allow(msgspec.Struct, frozen=True):
    """One rule of a policy chain: allow what matches both; None matches everything."""

    peer: Peer | None = None
    ports: Ports | None = None


class PolicyChain(msgspec.Struct, frozen=True, tag=True):
    """What one policy allows in one direction. What it does not allow it leaves to others."""

    direction: Direction
    rules: tuple[Allow, ...]


class PodChain(msgspec.Struct, frozen=True, tag=True):
    """What decides for pods that the same policies select: allowed by any of them, else dropped."""

    direction: Direction
    policies: tuple[str, ...]


Chain = PolicyChain | PodChain


class Element(msgspec.Struct, frozen=True):
    """An element of a set, or of a map where ``chain`` is given."""

    set: str
    kind: SetKind
    key: Key
    chain: str = ""


class Update(msgspec.Struct, frozen=True):
    """A change of the filter; the order of the fields is the order in which it is made."""

    new_sets: tuple[tuple[str, SetKind], ...] = ()
    new_chains: tuple[tuple[str, Chain], ...] = ()
    gone_elements: tuple[Element, ...] = ()
    new_elements: tuple[Element, ...] = ()
    gone_chains: tuple[str, ...] = ()
    gone_sets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Update()
