"""Peers in NetworkPolicies: whom traffic may come from, or go to.

Source: Kubernetes API reference of NetworkPolicy, and what its validation asks.
"""

import ipaddress
from collections.abc import Iterator

from vcjob.api.problems import Path, Problem, errors
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.readable import readable_part
from vcjob.api.schema.scheduling import LABEL_SELECTOR
from vcjob.api.schema.types import TEXT, ListOf, record, required
from vcjob.api.types import Object

POLICY_PEER = record(
    "NetworkPolicyPeer",
    {
        "podSelector": LABEL_SELECTOR,
        "namespaceSelector": LABEL_SELECTOR,
        "ipBlock": record("IPBlock", {"cidr": required(TEXT), "except": ListOf(TEXT)}),
    },
)

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def peer_problems(peer: Object) -> list[Problem]:
    """Every problem of a peer; paths begin within it."""
    problems = check_fields(peer, POLICY_PEER)
    if errors(problems):
        return problems
    return [*problems, *peer_rules(readable_part(peer, POLICY_PEER), ())]


def peer_rules(peer: Object, path: Path) -> Iterator[Problem]:
    """That it is one thing, and its network one that can be read; its fields have their types."""
    if not peer:
        yield Problem("a peer is a podSelector, a namespaceSelector, both, or an ipBlock", path)
    block = peer.get("ipBlock")
    if block is None:
        return
    if len(peer) > 1:
        yield Problem("ipBlock cannot stand beside selectors: write two peers", path)
    whole = _network(block.get("cidr", ""))
    if whole is None:
        told = f"{block.get('cidr', '')[:60]!r} is no network such as 10.0.0.0/8"
        yield Problem(told, (*path, "ipBlock", "cidr"))
    for index, text in enumerate(block.get("except", [])):
        if whole is not None and not _lies_in(_network(text), whole):
            told = f"{text[:60]!r} is no network inside of {whole}"
            yield Problem(told, (*path, "ipBlock", "except", index))


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _lies_in(part: _Network | None, whole: _Network) -> bool:
    if isinstance(part, ipaddress.IPv4Network) and isinstance(whole, ipaddress.IPv4Network):
        return part != whole and part.subnet_of(whole)
    if isinstance(part, ipaddress.IPv6Network) and isinstance(whole, ipaddress.IPv6Network):
        return part != whole and part.subnet_of(whole)
    return False
