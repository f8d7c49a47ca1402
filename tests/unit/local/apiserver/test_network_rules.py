"""What is wrong with a Service, an EndpointSlice or a NetworkPolicy."""

from typing import Any

import pytest

from vcjob.api.problems import format_path
from vcjob.local.apiserver.network_rules import (
    endpoint_slice,
    network_policy,
    new_service,
    service,
)


def told(problems: Any) -> list[str]:
    return [f"{format_path(one.path)}: {one.message}" for one in problems]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"ports": [{"port": 1}]}, ""),
        ({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}, ""),
        ({"ports": [{"port": 1, "targetPort": "http"}]}, ""),
        ({"type": "ExternalName", "externalName": "example.com."}, ""),
        ({"ports": [{"port": 1}, {"name": "b", "port": 2}]},
         "spec.ports[0].name: each of several ports needs a name"),
        ({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]},
         "spec.ports[1].name: two ports have the name a"),
        ({"ports": [{"name": "A b", "port": 1}]}, "spec.ports[0].name: the name of a port must"),
        ({"ports": [{"port": 1, "targetPort": 70000}]},
         "spec.ports[0].targetPort: a port is a number from 1 to 65535, not 70000"),
        ({"ports": [{"port": 1, "targetPort": "not ok"}]}, "spec.ports[0].targetPort: the name"),
        ({"type": "ExternalName"}, "spec.externalName: the name must"),
    ],
)  # fmt: skip
def test_services(spec: dict[str, Any], said: str) -> None:
    found = told(service({"spec": spec}))

    assert [one.startswith(said) for one in found] == [True] * bool(said)


@pytest.mark.parametrize(
    ("spec", "needs"),
    [
        ({}, True),
        (None, True),
        ({"selector": {"a": "b"}}, True),
        ({"selector": {"a": "b"}, "clusterIP": "None"}, False),
        ({"ports": [{"port": 1}]}, False),
        ({"type": "ExternalName"}, False),
        (5, False),
    ],
)
def test_a_new_service_has_ports_or_is_headless(spec: Any, needs: bool) -> None:
    assert bool(told(new_service({"spec": spec}))) is needs


@pytest.mark.parametrize(
    ("family", "address", "right"),
    [
        ("IPv4", "10.0.0.1", True),
        ("IPv4", "fd00::1", False),
        ("IPv4", "nowhere", False),
        ("IPv6", "fd00::1", True),
        ("FQDN", "example.com", True),
        ("FQDN", "not a name", False),
    ],
)
def test_addresses_of_a_slice_are_of_its_type(family: str, address: str, right: bool) -> None:
    obj = {"addressType": family, "endpoints": [{"addresses": [address]}]}

    assert (told(endpoint_slice(obj)) == []) is right


def test_a_slice_has_bounds() -> None:
    many = [{"addresses": ["10.0.0.1"]}] * 1001
    long = [{"addresses": ["10.0.0.1"] * 101}]

    for endpoints, said in ((many, "at most 1000 endpoints"), (long, "at most 100 addresses")):
        [problem] = told(endpoint_slice({"addressType": "IPv4", "endpoints": endpoints}))
        assert said in problem


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, ""),
        ({"from": [{"podSelector": {}, "namespaceSelector": {}}]}, ""),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}, ""),
        ({"from": [{"ipBlock": {"cidr": "fd00::/8", "except": ["fd00:1::/32"]}}]}, ""),
        ({"ports": [{"port": 80, "endPort": 90}, {"port": "http"}, {"protocol": "UDP"}]}, ""),
        ({"from": [{}]}, "spec.ingress[0].from[0]: a peer is"),
        ({"from": [{"ipBlock": {"cidr": "x"}}]}, "spec.ingress[0].from[0].ipBlock.cidr: 'x' is no"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.1"}}]}, "spec.ingress[0].from[0].ipBlock.cidr:"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]},
         "spec.ingress[0].from[0]: ipBlock cannot stand beside selectors"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]},
         "spec.ingress[0].from[0].ipBlock.except[0]: '11.0.0.0/16' is no network inside"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["fd00::/16"]}}]},
         "spec.ingress[0].from[0].ipBlock.except[0]:"),
        ({"ports": [{"port": 0}]}, "spec.ingress[0].ports[0].port: a port is"),
        ({"ports": [{"port": 80, "endPort": 79}]}, "spec.ingress[0].ports[0].endPort:"),
        ({"ports": [{"port": "http", "endPort": 79}]}, "spec.ingress[0].ports[0].endPort:"),
    ],
)  # fmt: skip
def test_policies(rule: dict[str, Any], said: str) -> None:
    found = told(network_policy({"spec": {"ingress": [rule]}}))

    assert [one.startswith(said) for one in found] == [True] * bool(said)
