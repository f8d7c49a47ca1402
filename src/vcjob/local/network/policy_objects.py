"""NetworkPolicy objects, read into what policy.py decides with.

Source: Kubernetes API reference, networking.k8s.io/v1 NetworkPolicy.
"""

from ipaddress import IPv4Network, ip_network
from socket import IPPROTO_SCTP, IPPROTO_TCP, IPPROTO_UDP
from typing import Any

import msgspec

from vcjob.api.types import Object
from vcjob.local.network.rules import Block, Direction
from vcjob.local.network.selectors import Selector

PROTOCOLS = {"TCP": IPPROTO_TCP, "UDP": IPPROTO_UDP, "SCTP": IPPROTO_SCTP}
"""Protocols by the name that the API has for them."""


class PeerSelector(msgspec.Struct, frozen=True):
    """Pods as a policy names its peers: of ``namespace``, or of those that ``namespaces`` fits."""

    namespace: str
    namespaces: Selector | None
    pods: Selector


class PolicyPort(msgspec.Struct, frozen=True):
    """A protocol with all ports, ports from ``first`` to ``last``, or the port called ``name``."""

    protocol: int
    first: int = 0
    last: int = 0
    name: str = ""


class PolicyRule(msgspec.Struct, frozen=True):
    """One ingress or egress rule: what it allows must match a peer and a port.

    None stands for any; no peer at all (only IPv6 blocks were named) for nothing.
    """

    peers: tuple[PeerSelector | Block, ...] | None
    ports: tuple[PolicyPort, ...] | None


class Policy(msgspec.Struct, frozen=True):
    """A NetworkPolicy. None as rules of a direction: it says nothing about that direction."""

    namespace: str
    name: str
    selector: Selector
    ingress: tuple[PolicyRule, ...] | None
    egress: tuple[PolicyRule, ...] | None

    @classmethod
    def of(cls, policy: Object) -> "Policy":
        """Read the object; ``policyTypes`` gets the API's default where it is not given."""
        metadata, spec = policy["metadata"], policy.get("spec") or {}
        namespace = metadata.get("namespace") or "default"
        types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        return cls(
            namespace=namespace,
            name=metadata["name"],
            selector=Selector.of(spec.get("podSelector") or {}),
            ingress=_rules(spec.get("ingress"), "from", namespace) if "Ingress" in types else None,
            egress=_rules(spec.get("egress"), "to", namespace) if "Egress" in types else None,
        )

    def rules(self, direction: Direction) -> tuple[PolicyRule, ...] | None:
        """The rules of a direction, None where the policy says nothing about it."""
        return self.ingress if direction is Direction.INGRESS else self.egress


def _rules(
    rules: list[dict[str, Any]] | None, peers: str, namespace: str
) -> tuple[PolicyRule, ...]:
    return tuple(
        PolicyRule(_peers(rule.get(peers) or [], namespace), _ports(rule.get("ports") or []))
        for rule in rules or []
    )


def _peers(peers: list[dict[str, Any]], namespace: str) -> tuple[PeerSelector | Block, ...] | None:
    if not peers:
        return None
    return tuple(peer for one in peers if (peer := _peer(one, namespace)))


def _peer(peer: dict[str, Any], namespace: str) -> PeerSelector | Block | None:
    if block := peer.get("ipBlock"):
        if not isinstance(ip_network(block["cidr"], strict=False), IPv4Network):
            return None  # pods have no IPv6 address
        return Block(block["cidr"], tuple(block.get("except") or ()))
    namespaces = peer.get("namespaceSelector")
    return PeerSelector(
        namespace="" if namespaces is not None else namespace,
        namespaces=None if namespaces is None else Selector.of(namespaces),
        pods=Selector.of(peer.get("podSelector") or {}),
    )


def _ports(ports: list[dict[str, Any]]) -> tuple[PolicyPort, ...] | None:
    return tuple(_port(port) for port in ports) or None


def _port(port: dict[str, Any]) -> PolicyPort:
    protocol = PROTOCOLS[port.get("protocol") or "TCP"]
    match port.get("port"):
        case None:
            return PolicyPort(protocol)
        case int(first):
            return PolicyPort(protocol, first, port.get("endPort") or first)
        case name:
            return PolicyPort(protocol, name=name)


def named_ports(spec: Object) -> frozenset[tuple[str, int, int]]:
    """The named ports of a pod's containers: name, protocol, number."""
    return frozenset(
        (port["name"], PROTOCOLS[port.get("protocol") or "TCP"], port["containerPort"])
        for container in spec.get("containers") or []
        for port in container.get("ports") or []
        if port.get("name")
    )
