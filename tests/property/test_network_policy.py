"""The compiled packet filter decides as a plain reading of Kubernetes' rules does.

The filter is run here by an interpreter of ``rules``, which also refuses what the kernel would.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.api import names
from vcjob.local.network.policy import PolicyTable
from vcjob.local.network.rules import (
    GROUP_MAPS,
    POD_MAPS,
    Allow,
    Block,
    Chain,
    Direction,
    Key,
    Members,
    PodChain,
    PolicyChain,
    SetKind,
    Update,
)

NUMBERS = {"TCP": 6, "UDP": 17, "SCTP": 132}


class Kernel:
    """The filter as the kernel would hold it."""

    def __init__(self) -> None:
        self.sets: dict[str, dict[Key, str]] = {
            name: {} for name in (*POD_MAPS.values(), *GROUP_MAPS.values())
        }
        self.chains: dict[str, Chain] = {}

    def apply(self, update: Update) -> None:
        for name, _ in update.new_sets:
            assert name not in self.sets
            self.sets[name] = {}
        for name, chain in update.new_chains:
            assert name not in self.chains
            self.chains[name] = chain
        for element in update.gone_elements:
            del self.sets[element.set][element.key]
        for element in update.new_elements:
            assert element.key not in self.sets[element.set]
            assert not element.chain or element.chain in self.chains
            self.sets[element.set][element.key] = element.chain
        for name in update.gone_chains:
            del self.chains[name]
        for name in update.gone_sets:
            del self.sets[name]
        assert self._used_chains() <= self.chains.keys()
        assert self._used_sets() <= self.sets.keys()

    def _used_chains(self) -> set[str]:
        leads = {chain for elements in self.sets.values() for chain in elements.values() if chain}
        jumps = {p for c in self.chains.values() if isinstance(c, PodChain) for p in c.policies}
        return leads | jumps

    def _used_sets(self) -> set[str]:
        rules = [r for c in self.chains.values() if isinstance(c, PolicyChain) for r in c.rules]
        peers = {rule.peer.set for rule in rules if isinstance(rule.peer, Members)}
        return peers | {rule.ports.named for rule in rules if rule.ports and rule.ports.named}

    def passes(self, source: "Pod", target: "Pod", protocol: int, port: int) -> bool:
        return all(
            self._passes(direction, source, target, protocol, port) for direction in Direction
        )

    def _passes(
        self, direction: Direction, source: "Pod", target: "Pod", protocol: int, port: int
    ) -> bool:
        decided, peer = (target, source) if direction is Direction.INGRESS else (source, target)
        chain = self.sets[POD_MAPS[direction]].get(decided.address)
        chain = chain or self.sets[GROUP_MAPS[direction]].get(decided.group)
        if not chain:
            return True
        pod_chain = self.chains[chain]
        assert isinstance(pod_chain, PodChain)
        assert pod_chain.direction is direction
        return any(
            self._allows(rule, peer, target, protocol, port)
            for name in pod_chain.policies
            for rule in self.rules_of(name, direction)
        )

    def rules_of(self, name: str, direction: Direction) -> tuple[Allow, ...]:
        chain = self.chains[name]
        assert isinstance(chain, PolicyChain)
        assert chain.direction is direction
        return chain.rules

    def _allows(self, rule: Allow, peer: "Pod", target: "Pod", protocol: int, port: int) -> bool:
        match rule.peer:
            case Members(name, SetKind.GROUPS):
                if peer.group not in self.sets[name]:
                    return False
            case Members(name):
                if peer.address not in self.sets[name]:
                    return False
            case Block(network, excluded):
                address = ip_address(peer.address)
                if address not in ip_network(network, strict=False):
                    return False
                if any(address in ip_network(one) for one in excluded):
                    return False
        if rule.ports is None:
            return True
        if rule.ports.protocol != protocol:
            return False
        if rule.ports.named:
            return (target.address, port) in self.sets[rule.ports.named]
        return not rule.ports.first or rule.ports.first <= port <= rule.ports.last


class Pod:
    """A pod of the test: its object, address, and the group that the table gave it."""

    def __init__(self, obj: dict[str, Any], address: str) -> None:
        self.obj, self.address, self.group = obj, address, 0
        self.namespace = obj["metadata"]["namespace"]
        self.labels = obj["metadata"]["labels"]


# The plain reading of the rules.


def fits(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    for key, text in selector.get("matchLabels", {}).items():
        if labels.get(key) != text:
            return False
    for one in selector.get("matchExpressions", []):
        there = one["key"] in labels
        chosen = there and labels[one["key"]] in one.get("values", [])
        wanted = {"In": chosen, "NotIn": not chosen, "Exists": there, "DoesNotExist": not there}
        if not wanted[one["operator"]]:
            return False
    return True


def expected(
    policies: dict[str, Any], namespaces: dict[str, Any], source: Pod, target: Pod,
    protocol: str, port: int,
) -> bool:  # fmt: skip
    def peer_fits(peer: dict[str, Any], pod: Pod, own_namespace: str) -> bool:
        if block := peer.get("ipBlock"):
            if ":" in block["cidr"]:
                return False
            address = ip_address(pod.address)
            return address in ip_network(block["cidr"]) and not any(
                address in ip_network(one) for one in block.get("except", [])
            )
        if "namespaceSelector" in peer:
            labels = namespaces.get(pod.namespace, {})
            labels = {**labels, "kubernetes.io/metadata.name": pod.namespace}
            if not fits(peer["namespaceSelector"], labels):
                return False
        elif pod.namespace != own_namespace:
            return False
        return fits(peer.get("podSelector", {}), pod.labels)

    def port_fits(one: dict[str, Any]) -> bool:
        if one.get("protocol", "TCP") != protocol:
            return False
        match one.get("port"):
            case None:
                return True
            case int(first):
                return first <= port <= one.get("endPort", first)
            case name:
                return any(
                    p["name"] == name and p["protocol"] == protocol and p["containerPort"] == port
                    for p in target.obj["spec"]["containers"][0]["ports"]
                )

    def consents(pod: Pod, peer: Pod, kind: str, field: str, peers: str) -> bool:
        chosen = [
            policy
            for policy in policies.values()
            if policy["metadata"]["namespace"] == pod.namespace
            and kind
            in policy["spec"].get(
                "policyTypes", ["Ingress", *(["Egress"] if policy["spec"].get("egress") else [])]
            )
            and fits(policy["spec"].get("podSelector", {}), pod.labels)
        ]
        return not chosen or any(
            (not r.get(peers) or any(peer_fits(p, peer, pod.namespace) for p in r[peers]))
            and (not r.get("ports") or any(port_fits(p) for p in r["ports"]))
            for policy in chosen
            for r in policy["spec"].get(field, [])
        )

    return consents(source, target, "Egress", "egress", "to") and consents(
        target, source, "Ingress", "ingress", "from"
    )


# What is tried.

LABELS = {
    names.JOB_NAME: ["a", "b"],
    names.JOB_NAMESPACE: ["one"],
    names.TASK_SPEC: ["ps", "worker"],
    "team": ["red", "blue"],
}
PORTS = [80, 81, 443]
labels = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(values) for key, values in LABELS.items()}
)
FEW = {
    f"pod{number}": {
        "metadata": {"name": f"pod{number}", "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"ports": ports}]},
    }
    for number, namespace, labels, ports in [
        (0, "two", {names.JOB_NAME: "a", names.TASK_SPEC: "ps"}, []),
        (1, "one", {names.JOB_NAME: "a", names.TASK_SPEC: "ps", "team": "red"}, []),
        (2, "one", {names.JOB_NAME: "a", names.TASK_SPEC: "worker"}, []),
        (4, "one", {names.JOB_NAME: "b", "team": "red"}, []),
    ]
}
"""Pods that are there from the start, so that a few policies have something to decide."""


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    key = draw(st.sampled_from(sorted(LABELS)))
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    if operator.endswith("In"):
        values = draw(st.lists(st.sampled_from(LABELS[key]), min_size=1, max_size=2))
        return {"key": key, "operator": operator, "values": values}
    return {"key": key, "operator": operator}


selectors = st.one_of(
    st.sampled_from(
        [
            {},
            {"matchLabels": {names.JOB_NAME: "a"}},
            {"matchLabels": {names.TASK_SPEC: "ps"}},
            {"matchLabels": {"team": "red"}},
        ]
    ),
    st.fixed_dictionaries(
        {},
        optional={"matchLabels": labels, "matchExpressions": st.lists(expressions(), max_size=2)},
    ),
)
namespace_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"kubernetes.io/metadata.name": "one"}},
        {"matchLabels": {"zone": "x"}},
        {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]},
    ]
)
blocks = st.sampled_from(
    [
        {"cidr": "10.0.0.0/8"},
        {"cidr": "10.128.0.0/29", "except": ["10.128.0.2/31", "10.128.0.5/32"]},
        {"cidr": "0.0.0.0/0"},
        {"cidr": "fd00::/8"},
    ]
)
peers = st.one_of(
    blocks.map(lambda block: {"ipBlock": block}),
    st.fixed_dictionaries(
        {}, optional={"podSelector": selectors, "namespaceSelector": namespace_selectors}
    ).filter(bool),
)
policy_ports = st.one_of(
    st.fixed_dictionaries({}, optional={"protocol": st.sampled_from(sorted(NUMBERS))}),
    st.fixed_dictionaries(
        {"port": st.sampled_from([*PORTS, "http", "other"])},
        optional={"protocol": st.sampled_from(sorted(NUMBERS))},
    ),
    st.just({"port": 80, "endPort": 81}),
)


def rules(side: str) -> st.SearchStrategy[Any]:
    return st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                side: st.lists(peers, max_size=2),
                "ports": st.lists(policy_ports, max_size=2),
            },
        ),
        max_size=2,
    )


types = st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"]])
policies = st.builds(
    lambda name, namespace, spec: {
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    },
    st.sampled_from(["p", "q", "r"]),
    st.sampled_from(["one", "two"]),
    st.fixed_dictionaries(
        {"podSelector": selectors},
        optional={"ingress": rules("from"), "egress": rules("to"), "policyTypes": types},
    ),
)
pods = st.builds(
    lambda number, labels, ports: {
        "metadata": {
            "name": f"pod{number}",
            "namespace": "one" if number % 3 else "two",
            "labels": labels,
        },
        "spec": {"containers": [{"ports": ports}]},
    },
    st.integers(0, 5),
    labels,
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(["http", "other"]),
                "protocol": st.sampled_from(["TCP", "UDP"]),
                "containerPort": st.sampled_from(PORTS),
            }
        ),
        max_size=2,
    ),
)
steps = st.one_of(
    st.tuples(st.just("pod"), pods),
    st.tuples(st.just("pod"), pods),
    st.tuples(st.just("no pod"), pods),
    st.tuples(st.just("policy"), policies),
    st.tuples(st.just("policy"), policies),
    st.tuples(st.just("no policy"), policies),
    st.tuples(st.just("namespace"), st.sampled_from([{}, {"zone": "x"}])),
    st.tuples(st.just("take"), st.none()),
)


class World:
    """What was told to the table, told to the plain reading too."""

    def __init__(self) -> None:
        self.table, self.kernel = PolicyTable(), Kernel()
        self.pods: dict[str, Pod] = {}
        self.policies: dict[str, Any] = {}
        self.namespaces: dict[str, Any] = {}

    def take(self) -> None:
        self.kernel.apply(self.table.take_update())

    def do(self, what: str, obj: Any) -> None:
        match what:
            case "pod":
                self.set_pod(obj)
            case "no pod":
                self.pods.pop(obj["metadata"]["name"], None)
                self.table.remove_pod(obj["metadata"]["namespace"], obj["metadata"]["name"])
            case "policy":
                self.policies[str(sorted(obj["metadata"].items()))] = obj
                self.table.set_policy(obj)
            case "no policy":
                self.policies.pop(str(sorted(obj["metadata"].items())), None)
                self.table.remove_policy(obj["metadata"]["namespace"], obj["metadata"]["name"])
            case "namespace":
                self.namespaces["two"] = obj
                self.table.set_namespace({"metadata": {"name": "two", "labels": obj}})
            case "take":
                self.take()

    def set_pod(self, obj: dict[str, Any]) -> None:
        name = obj["metadata"]["name"]
        if known := self.pods.get(name):
            # A pod stays in its group.
            job = {
                k: v for k, v in known.labels.items() if k in (names.JOB_NAME, names.JOB_NAMESPACE)
            }
            others = {
                k: v
                for k, v in obj["metadata"]["labels"].items()
                if k not in (names.JOB_NAME, names.JOB_NAMESPACE)
            }
            obj = {**obj, "metadata": {**obj["metadata"], "labels": {**others, **job}}}
        pod = Pod(obj, f"10.128.0.{2 + int(name[3:])}")
        pod.group = self.table.set_pod(obj, pod.address)
        self.pods[name] = pod

    def pairs(self) -> Iterator[tuple[Pod, Pod]]:
        for source in self.pods.values():
            for target in self.pods.values():
                if source is not target:
                    yield source, target


@settings(max_examples=400, deadline=None)
@given(st.lists(steps, min_size=2, max_size=12))
def test_the_filter_decides_as_the_rules_say(told: list[tuple[str, Any]]) -> None:
    world = World()
    for pod in FEW.values():
        world.do("pod", pod)
    for what, obj in told:
        world.do(what, obj)
    world.take()
    for source, target in world.pairs():
        for protocol, number in NUMBERS.items():
            for port in PORTS:
                assert world.kernel.passes(source, target, number, port) == expected(
                    world.policies, world.namespaces, source, target, protocol, port
                ), (source.obj, target.obj, protocol, port)


@settings(max_examples=50, deadline=None)
@given(st.lists(steps, max_size=25))
def test_nothing_is_left_of_what_is_gone(told: list[tuple[str, Any]]) -> None:
    world = World()
    for what, obj in told:
        world.do(what, obj)
    for pod in world.pods.values():
        world.table.remove_pod(pod.namespace, pod.obj["metadata"]["name"])
    for policy in world.policies.values():
        metadata = policy["metadata"]
        world.table.remove_policy(metadata["namespace"], metadata["name"])
    world.take()
    assert world.kernel.chains == {}
    assert set(world.kernel.sets) == {*POD_MAPS.values(), *GROUP_MAPS.values()}
    assert not any(world.kernel.sets.values())
