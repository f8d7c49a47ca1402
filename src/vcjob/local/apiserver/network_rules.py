"""What Services, EndpointSlices and NetworkPolicies must obey beyond the types of single fields.

Source: Kubernetes API reference of each kind, and what its validation asks.
"""

import ipaddress
from collections.abc import Iterator

from vcjob.api.problems import Path, Problem
from vcjob.api.schema.network_peers import peer_rules
from vcjob.api.types import Object
from vcjob.api.validation import dns_1123_label, dns_1123_subdomain, port_name

_PORTS = range(1, 65536)
_FAMILIES = {"IPv4": 4, "IPv6": 6}
_MOST_ENDPOINTS, _MOST_ADDRESSES = 1000, 100


def service(obj: Object) -> Iterator[Problem]:
    """Names of ports that tell them apart, ports that can be, and the name of an external one."""
    spec, path = obj.get("spec", {}), ("spec", "ports")
    if spec.get("type") == "ExternalName":
        name = spec.get("externalName", "").removesuffix(".")
        if wrong := dns_1123_subdomain(name):
            yield Problem(f"the name must {wrong}", ("spec", "externalName"))
    ports = spec.get("ports", [])
    yield from _names_of(ports, path)
    for index, port in enumerate(ports):
        yield from _port(port.get("targetPort"), (*path, index, "targetPort"))


def new_service(given: Object) -> Iterator[Problem]:
    """The ports that a new Service needs, before it is made the headless one that all are here."""
    spec = given.get("spec") or {}
    if not isinstance(spec, dict) or spec.get("type") == "ExternalName":
        return
    if spec.get("clusterIP") != "None" and not spec.get("ports"):
        yield Problem(
            "a Service needs ports",
            ("spec", "ports"),
            "without any it must be headless: add clusterIP: None",
        )


def endpoint_slice(obj: Object) -> Iterator[Problem]:
    """Addresses of the slice's type, in numbers that a slice may have."""
    family = obj.get("addressType", "")
    endpoints = obj.get("endpoints", [])
    if len(endpoints) > _MOST_ENDPOINTS:
        yield Problem(f"a slice may have at most {_MOST_ENDPOINTS} endpoints", ("endpoints",))
    for index, endpoint in enumerate(endpoints):
        path = ("endpoints", index, "addresses")
        addresses = endpoint.get("addresses", [])
        if len(addresses) > _MOST_ADDRESSES:
            yield Problem(f"an endpoint may have at most {_MOST_ADDRESSES} addresses", path)
        for position, address in enumerate(addresses):
            if not _is_address(address, family):
                yield Problem(f"{address[:60]!r} is no address of {family}", (*path, position))


def network_policy(obj: Object) -> Iterator[Problem]:
    """Peers that are one thing each, networks that can be read, and ranges of ports."""
    spec = obj.get("spec", {})
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction, [])):
            path = ("spec", direction, index)
            for position, peer in enumerate(rule.get(peers, [])):
                yield from peer_rules(peer, (*path, peers, position))
            for position, port in enumerate(rule.get("ports", [])):
                yield from _policy_port(port, (*path, "ports", position))


def _names_of(ports: list[Object], path: Path) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name, where = port.get("name", ""), (*path, index, "name")
        if not name and len(ports) > 1:
            yield Problem("each of several ports needs a name", where)
        elif name and (wrong := dns_1123_label(name)):
            yield Problem(f"the name of a port must {wrong}", where)
        elif name in seen:
            yield Problem(f"two ports have the name {name}", where)
        seen.add(name)


def _port(value: object, path: Path) -> Iterator[Problem]:
    if isinstance(value, int) and value not in _PORTS:
        yield Problem(f"a port is a number from 1 to 65535, not {value}", path)
    elif isinstance(value, str) and (wrong := port_name(value)):
        yield Problem(f"the name of a port must {wrong}", path)


def _policy_port(port: Object, path: Path) -> Iterator[Problem]:
    first, last = port.get("port"), port.get("endPort")
    yield from _port(first, (*path, "port"))
    if last is None:
        return
    if not isinstance(first, int):
        yield Problem("endPort needs a number as port", (*path, "endPort"))
    elif last < first:
        yield Problem("endPort must not be less than port", (*path, "endPort"))


def _is_address(text: str, family: str) -> bool:
    if family not in _FAMILIES:
        return not dns_1123_subdomain(text)
    try:
        return ipaddress.ip_address(text).version == _FAMILIES[family]
    except ValueError:
        return False
