"""NetworkPolicy objects compiled into the packet filter, step by step as pods and policies change.

Source of the rules: Kubernetes documentation, Network Policies. A pod is isolated in a direction
when a policy of its namespace selects it for that direction; then it takes (or makes) only the
connections that at least one of these policies allows. A connection needs both ends' consent.

The cost of a pod does not grow with their number. Pods whose namespace and job labels are equal
share an interface *group*, so a selector that asks for nothing else, as all of the svc plugin's
do, is settled once a group: its pods come and go without any change of the filter. Another
selector costs each pod one element in a set.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, count, product

import msgspec

from vcjob.api.types import Object
from vcjob.local.network.changes import Changes
from vcjob.local.network.members import (
    GROUP_LABELS,
    Group,
    MemberSets,
    Pod,
    Selected,
    goes_by_group,
)
from vcjob.local.network.policy_objects import (
    PeerSelector,
    Policy,
    PolicyRule,
    named_ports,
)
from vcjob.local.network.rules import (
    GROUP_MAPS,
    POD_MAPS,
    Allow,
    Block,
    Direction,
    Key,
    Peer,
    PodChain,
    PolicyChain,
    Ports,
    Update,
)


class _Numbered(msgspec.Struct, frozen=True, eq=False):
    number: int
    policy: Policy

    @property
    def by_group(self) -> bool:
        return goes_by_group(self.policy.selector)

    @property
    def directions(self) -> list[Direction]:
        return [one for one in Direction if self.policy.rules(one) is not None]

    def mark(self, selected: Selected, *, there: bool) -> None:
        for direction in self.directions:
            if there:
                selected.of(direction).add(self.number)
            else:
                selected.of(direction).discard(self.number)


class _PodChain(msgspec.Struct, eq=False):
    policies: tuple[int, ...]
    users: int = 0


class PolicyTable:
    """What the filter has to be for the pods, policies and namespaces told so far.

    Tell it of every change, then hand ``take_update()`` to the node *before* the pod is added
    or starts, so that no packet passes a filter that does not know the pod.
    """

    def __init__(self) -> None:
        self._groups: defaultdict[str, dict[tuple[str | None, ...], Group]] = defaultdict(dict)
        self._pods: dict[tuple[str, str], Pod] = {}
        self._policies: defaultdict[str, dict[str, _Numbered]] = defaultdict(dict)
        self._chains: dict[str, _PodChain] = {}
        self._chain_names: dict[tuple[Direction, tuple[int, ...]], str] = {}
        self._group_numbers = count(1)
        self._policy_numbers = count(1)
        self._chain_numbers = count(1)
        self._changes = Changes()
        self._sets = MemberSets(self._changes)

    def set_pod(self, pod: Object, address: str) -> int:
        """Tell of a pod with its address, new or changed; returns its group (from 1).

        The group's labels count as the pod had them when it was first told.
        """
        metadata = pod["metadata"]
        namespace, name = metadata.get("namespace") or "default", metadata["name"]
        labels: Mapping[str, str] = metadata.get("labels") or {}
        ports = named_ports(pod.get("spec") or {})
        known = self._pods.get((namespace, name))
        group = known.group if known else self._group_of(namespace, labels)
        others = {key: text for key, text in labels.items() if key not in GROUP_LABELS}
        new = Pod(group, address, {**others, **group.labels}, ports)
        if known:
            if (known.address, known.labels, known.ports) == (address, new.labels, ports):
                return group.number
            self._leave_pod(known)
        self._pods[namespace, name] = new
        group.pods[name] = new
        self._sets.enter_pod(new)
        for one in self._policies[namespace].values():
            if not one.by_group and one.policy.selector.matches(new.labels):
                one.mark(new.selected, there=True)
        self._lead_pod(new)
        return group.number

    def remove_pod(self, namespace: str, name: str) -> None:
        """Tell that a pod is gone, before its address is given to another."""
        pod = self._pods.pop((namespace, name), None)
        if pod is None:
            return
        self._leave_pod(pod)
        group = pod.group
        del group.pods[name]
        if not group.pods:
            self._sets.leave_group(group)
            group.selected = Selected()
            self._lead_group(group)
            del self._groups[namespace][_group_key(group.labels)]

    def set_policy(self, policy: Object) -> None:
        """Tell of a NetworkPolicy, new or changed."""
        new = Policy.of(policy)
        known = self._policies[new.namespace].get(new.name)
        if known and known.policy == new:
            return
        one = _Numbered(next(self._policy_numbers), new)
        for direction in one.directions:
            rules = new.rules(direction) or ()
            allowed = tuple(allow for rule in rules for allow in self._allowed(rule))
            name = _policy_chain(one.number, direction)
            self._changes.add_chain(name, PolicyChain(direction, allowed))
        self._tell_selected(one, there=True)
        if known:
            self._leave_policy(known)
        self._policies[new.namespace][new.name] = one

    def remove_policy(self, namespace: str, name: str) -> None:
        """Tell that a NetworkPolicy is gone."""
        if known := self._policies[namespace].pop(name, None):
            self._leave_policy(known)

    def set_namespace(self, namespace: Object) -> None:
        """Tell of a Namespace object; one that is not told has the label of its name only."""
        metadata = namespace["metadata"]
        name = metadata["name"]
        groups = self._groups[name].values()
        self._sets.change_namespace(name, metadata.get("labels") or {}, groups)

    def remove_namespace(self, name: str) -> None:
        """Tell that a Namespace object is gone."""
        self._sets.change_namespace(name, {}, self._groups[name].values())

    def take_update(self) -> Update:
        """What changed since the last call; it is false where nothing did.

        Each must be applied once, in order.
        """
        return self._changes.take()

    def _group_of(self, namespace: str, labels: Mapping[str, str]) -> Group:
        labels = {key: labels[key] for key in GROUP_LABELS if key in labels}
        group = self._groups[namespace].get(_group_key(labels))
        if group is None:
            group = Group(next(self._group_numbers), namespace, labels)
            self._groups[namespace][_group_key(labels)] = group
            self._sets.enter_group(group)
            for one in self._policies[namespace].values():
                if one.by_group and one.policy.selector.matches(labels):
                    one.mark(group.selected, there=True)
            self._lead_group(group)
        return group

    def _leave_pod(self, pod: Pod) -> None:
        self._sets.leave_pod(pod)
        pod.selected = Selected()
        self._lead_pod(pod)

    def _leave_policy(self, one: _Numbered) -> None:
        self._tell_selected(one, there=False)
        for direction in one.directions:
            self._changes.remove_chain(_policy_chain(one.number, direction))
            for rule in one.policy.rules(direction) or ():
                for peer in rule.peers or ():
                    if isinstance(peer, PeerSelector):
                        self._sets.release_peers(peer)
                for port in rule.ports or ():
                    self._sets.release_ports(port)

    def _tell_selected(self, one: _Numbered, *, there: bool) -> None:
        """Lead what a policy selects to chains with it, or without it."""
        selector = one.policy.selector
        for group in self._groups[one.policy.namespace].values():
            if one.by_group:
                if selector.matches(group.labels):
                    one.mark(group.selected, there=there)
                    self._lead_group(group)
                continue
            for pod in group.pods.values():
                if selector.matches(pod.labels):
                    one.mark(pod.selected, there=there)
                    self._lead_pod(pod)

    def _allowed(self, rule: PolicyRule) -> Iterator[Allow]:
        peers: list[Peer | None] = [None]
        if rule.peers is not None:
            peers = [
                peer if isinstance(peer, Block) else self._sets.use_peers(peer, self._all_groups())
                for peer in rule.peers
            ]
        ports: list[Ports | None] = [None]
        if rule.ports is not None:
            ports = [self._sets.use_ports(port, self._all_groups()) for port in rule.ports]
        return (Allow(peer, port) for peer, port in product(peers, ports))

    def _all_groups(self) -> Iterator[Group]:
        return chain.from_iterable(groups.values() for groups in self._groups.values())

    def _lead_group(self, group: Group) -> None:
        """Lead a group to the chain of its policies, and its pods that others select too."""
        for direction in Direction:
            policies = group.selected.of(direction)
            self._lead(GROUP_MAPS[direction], group.number, direction, policies)
        for pod in group.pods.values():
            if pod.selected:
                self._lead_pod(pod)

    def _lead_pod(self, pod: Pod) -> None:
        for direction in Direction:
            policies = pod.selected.of(direction)
            if policies:
                policies = policies | pod.group.selected.of(direction)
            self._lead(POD_MAPS[direction], pod.address, direction, policies)

    def _lead(self, name: str, key: Key, direction: Direction, policies: set[int]) -> None:
        """Let a map lead ``key`` to the chain for these policies; to none if there are none."""
        before = self._changes.chain_of(name, key)
        now = self._use_chain(direction, tuple(sorted(policies))) if policies else ""
        if now != before:
            if now:
                self._changes.set(name, key, now)
            else:
                self._changes.unset(name, key)
        if before:
            self._release_chain(direction, before)

    def _use_chain(self, direction: Direction, policies: tuple[int, ...]) -> str:
        name = self._chain_names.get((direction, policies))
        if name is None:
            name = f"pods{next(self._chain_numbers)}"
            self._chain_names[direction, policies] = name
            self._chains[name] = _PodChain(policies)
            jumps = tuple(_policy_chain(number, direction) for number in policies)
            self._changes.add_chain(name, PodChain(direction, jumps))
        self._chains[name].users += 1
        return name

    def _release_chain(self, direction: Direction, name: str) -> None:
        used = self._chains[name]
        used.users -= 1
        if not used.users:
            del self._chains[name], self._chain_names[direction, used.policies]
            self._changes.remove_chain(name)


def _group_key(labels: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(labels.get(key) for key in sorted(GROUP_LABELS))


def _policy_chain(number: int, direction: Direction) -> str:
    return f"{direction.value}{number}"
