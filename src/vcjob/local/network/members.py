"""Pods and their groups, and the sets of them that rules of the packet filter name as peers.

A set is shared by all rules that describe its members alike, and goes with the last of them.
"""

from collections.abc import Iterable, Mapping
from itertools import count

import msgspec

from vcjob.api import names
from vcjob.local.network.changes import Changes
from vcjob.local.network.policy_objects import PeerSelector, PolicyPort
from vcjob.local.network.rules import Direction, Key, Members, Ports, SetKind
from vcjob.local.network.selectors import Selector

GROUP_LABELS = frozenset((names.JOB_NAME, names.JOB_NAMESPACE))
"""The labels that make a pod's group, together with its namespace."""

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has, with its name."""


class Selected(msgspec.Struct, eq=False):
    """The numbers of the policies that select a group or a pod, in each direction."""

    ingress: set[int] = set()
    egress: set[int] = set()

    def of(self, direction: Direction) -> set[int]:
        """Those that say something about a direction."""
        return self.ingress if direction is Direction.INGRESS else self.egress

    def __bool__(self) -> bool:
        return bool(self.ingress or self.egress)


class Group(msgspec.Struct, eq=False):
    """The pods of one namespace whose GROUP_LABELS are equal."""

    number: int
    namespace: str
    labels: Mapping[str, str]
    pods: dict[str, "Pod"] = {}
    selected: Selected = msgspec.field(default_factory=Selected)


class Pod(msgspec.Struct, eq=False):
    """A pod; ``ports`` are its named ones, ``selected`` only policies that do not go by group."""

    group: Group
    address: str
    labels: Mapping[str, str]
    ports: frozenset[tuple[str, int, int]]
    selected: Selected = msgspec.field(default_factory=Selected)


class _Shared(msgspec.Struct, eq=False):
    name: str
    users: int = 0


def goes_by_group(selector: Selector) -> bool:
    """Whether the answer of a selector of pods is the same for all pods of a group."""
    return selector.keys <= GROUP_LABELS


class MemberSets:
    """The sets that rules use, kept true as groups and pods come and go."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._numbers = count(1)
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._of_groups: dict[PeerSelector, _Shared] = {}
        self._of_pods: dict[PeerSelector, _Shared] = {}
        self._of_ports: dict[tuple[str, int], _Shared] = {}

    def enter_group(self, group: Group) -> None:
        """Put a new group into its sets."""
        for selector, members in self._of_groups.items():
            self._place(members, group.number, self._is_peer(selector, group))

    def leave_group(self, group: Group) -> None:
        """Take a group out of all sets."""
        for members in self._of_groups.values():
            self._changes.unset(members.name, group.number)

    def enter_pod(self, pod: Pod) -> None:
        """Put a new pod into its sets."""
        for selector, members in self._of_pods.items():
            self._place(members, pod.address, self._is_peer(selector, pod.group, pod))
        for name, protocol, number in pod.ports:
            if ports := self._of_ports.get((name, protocol)):
                self._changes.set(ports.name, (pod.address, number))

    def leave_pod(self, pod: Pod) -> None:
        """Take a pod out of all sets."""
        for members in self._of_pods.values():
            self._changes.unset(members.name, pod.address)
        for name, protocol, number in pod.ports:
            if ports := self._of_ports.get((name, protocol)):
                self._changes.unset(ports.name, (pod.address, number))

    def change_namespace(
        self, name: str, labels: Mapping[str, str], groups: Iterable[Group]
    ) -> None:
        """Give a namespace, which has these groups, other labels."""
        self._namespaces[name] = labels
        for group in groups:
            for selector, members in self._of_groups.items():
                self._place(members, group.number, self._is_peer(selector, group))
            for selector, members in self._of_pods.items():
                for pod in group.pods.values():
                    self._place(members, pod.address, self._is_peer(selector, group, pod))

    def use_peers(self, selector: PeerSelector, groups: Iterable[Group]) -> Members:
        """The set of the peers that a rule names, for one more use, chosen from all ``groups``."""
        by_group = goes_by_group(selector.pods)
        kind = SetKind.GROUPS if by_group else SetKind.ADDRESSES
        sets = self._of_groups if by_group else self._of_pods
        members = sets.get(selector)
        if members is None:
            members = sets[selector] = self._new_set("peers", kind)
            for group in groups:
                if by_group:
                    self._place(members, group.number, self._is_peer(selector, group))
                    continue
                for pod in group.pods.values():
                    self._place(members, pod.address, self._is_peer(selector, group, pod))
        members.users += 1
        return Members(members.name, kind)

    def release_peers(self, selector: PeerSelector) -> None:
        """End one use."""
        sets = self._of_groups if goes_by_group(selector.pods) else self._of_pods
        members = sets[selector]
        members.users -= 1
        if not members.users:
            self._changes.remove_set(sets.pop(selector).name)

    def use_ports(self, port: PolicyPort, groups: Iterable[Group]) -> Ports:
        """What a rule's port matches, for one more use, chosen from all ``groups``."""
        if not port.name:
            return Ports(port.protocol, port.first, port.last)
        key = (port.name, port.protocol)
        ports = self._of_ports.get(key)
        if ports is None:
            ports = self._of_ports[key] = self._new_set("ports", SetKind.PORTS)
            for pod in (pod for group in groups for pod in group.pods.values()):
                for name, protocol, number in pod.ports:
                    if (name, protocol) == key:
                        self._changes.set(ports.name, (pod.address, number))
        ports.users += 1
        return Ports(port.protocol, named=ports.name)

    def release_ports(self, port: PolicyPort) -> None:
        """End one use."""
        if not port.name:
            return
        key = (port.name, port.protocol)
        ports = self._of_ports[key]
        ports.users -= 1
        if not ports.users:
            self._changes.remove_set(self._of_ports.pop(key).name)

    def _new_set(self, what: str, kind: SetKind) -> _Shared:
        shared = _Shared(f"{what}{next(self._numbers)}")
        self._changes.add_set(shared.name, kind)
        return shared

    def _is_peer(self, selector: PeerSelector, group: Group, pod: Pod | None = None) -> bool:
        if selector.namespaces is None:
            if selector.namespace != group.namespace:
                return False
        else:
            labels = self._namespaces.get(group.namespace, {})
            if not selector.namespaces.matches({**labels, NAMESPACE_NAME: group.namespace}):
                return False
        return selector.pods.matches(pod.labels if pod else group.labels)

    def _place(self, members: _Shared, key: Key, belongs: bool) -> None:
        if belongs:
            self._changes.set(members.name, key)
        else:
            self._changes.unset(members.name, key)
