"""Reading NetworkPolicy objects."""

from typing import Any

import pytest

from vcjob.local.network.policy_objects import (
    PeerSelector,
    Policy,
    PolicyPort,
    PolicyRule,
    named_ports,
)
from vcjob.local.network.rules import Block
from vcjob.local.network.selectors import Selector

ANY_RULE = (PolicyRule(None, None),)


def read(**spec: object) -> Policy:
    return Policy.of({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "ingress", "egress"),
    [
        ({}, (), None),
        ({"egress": [{}]}, (), ANY_RULE),
        ({"ingress": [{}]}, ANY_RULE, None),
        ({"policyTypes": ["Egress"]}, None, ()),
        ({"policyTypes": ["Egress"], "ingress": [{}]}, None, ()),
        ({"policyTypes": ["Ingress", "Egress"]}, (), ()),
    ],
)
def test_directions(spec: dict[str, Any], ingress: object, egress: object) -> None:
    policy = read(**spec)
    assert (policy.ingress, policy.egress) == (ingress, egress)


@pytest.mark.parametrize(
    ("port", "read_as"),
    [
        ({}, PolicyPort(6)),
        ({"protocol": "UDP"}, PolicyPort(17)),
        ({"port": 80}, PolicyPort(6, 80, 80)),
        ({"port": 80, "endPort": 90, "protocol": "SCTP"}, PolicyPort(132, 80, 90)),
        ({"port": "http"}, PolicyPort(6, name="http")),
    ],
)
def test_ports(port: dict[str, Any], read_as: PolicyPort) -> None:
    (rule,) = read(ingress=[{"ports": [port]}]).ingress or ()
    assert rule == PolicyRule(None, (read_as,))


EVERYTHING = Selector()


@pytest.mark.parametrize(
    ("peer", "read_as"),
    [
        ({"podSelector": {}}, (PeerSelector("ns", None, EVERYTHING),)),
        ({"namespaceSelector": {}}, (PeerSelector("", EVERYTHING, EVERYTHING),)),
        (
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
            (Block("10.0.0.0/8", ("10.1.0.0/16",)),),
        ),
        # No pod has an IPv6 address: nobody, which is not the same as everybody.
        ({"ipBlock": {"cidr": "fd00::/8"}}, ()),
    ],
)
def test_peers(peer: dict[str, Any], read_as: object) -> None:
    (rule,) = read(ingress=[{"from": [peer]}]).ingress or ()
    assert rule.peers == read_as


def test_named_ports_of_all_containers() -> None:
    ports = [{"name": "http", "containerPort": 80}, {"containerPort": 81}]
    more = [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]
    spec = {"containers": [{"ports": ports}, {"ports": more}, {}]}
    assert named_ports(spec) == {("http", 6, 80), ("dns", 17, 53)}
