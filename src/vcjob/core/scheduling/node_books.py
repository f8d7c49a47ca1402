"""The books of a cluster's nodes: what is left of each, kept up in constant time a change."""

from typing import NamedTuple

from vcjob.api.types import Object
from vcjob.core.scheduling.booked import FINISHED, version_of
from vcjob.core.scheduling.fitting import Nodes, Room
from vcjob.core.scheduling.nodes import NodeFacts, node_facts
from vcjob.core.scheduling.shapes import Demands, PodShape, pod_shape


class _Bound(NamedTuple):
    """A pod that takes room of a node; no node: one that no longer does."""

    version: int
    node: str
    shape: PodShape


class NodeBooks:
    """All nodes, and what all pods of the cluster take of them."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        self._pods: dict[str, _Bound] = {}
        self._taken: dict[str, dict[str, int]] = {}
        self._left: dict[str, Room] = {}
        self._eligible: dict[Demands, dict[str, None]] = {}

    def enter_node(self, node: Object, *, gone: bool = False) -> bool:
        """A node as it is now, or as it last was; returns whether anything that counts changed."""
        name = node["metadata"]["name"]
        facts = None if gone else node_facts(node)
        if facts == self.nodes.get(name):
            return False
        if facts is None:
            del self.nodes[name]
        else:
            self.nodes[name] = facts
        self._left.pop(name, None)
        self._eligible = {}
        return True

    def enter_pod(self, pod: Object, *, gone: bool = False) -> bool:
        """A pod as it is now, or as it last was; returns whether a node has more room for it."""
        uid, spec = pod["metadata"]["uid"], pod.get("spec") or {}
        old = self._pods.get(uid)
        if old and old.version > version_of(pod):
            return False
        node = spec.get("nodeName") or ""
        finished = (pod.get("status") or {}).get("phase") in FINISHED
        takes_room = bool(node) and not finished and not gone
        freed = False
        if old and old.node and (old.node != node or not takes_room):
            self._count(old, -1)
            freed = True
        if takes_room:
            new = _Bound(version_of(pod), node, old.shape if old else pod_shape(spec))
            self._pods[uid] = new
            if not old or not old.node or freed:
                self._count(new, 1)
        elif gone:
            self._pods.pop(uid, None)
        elif old:  # late news must not bring it back
            self._pods[uid] = _Bound(version_of(pod), "", old.shape)
        return freed

    def place(self) -> Nodes:
        """The nodes with what is left of them."""
        for name, node in self.nodes.items():
            if name not in self._left:
                taken = self._taken.get(name, {})
                self._left[name] = {
                    resource: amount - taken.get(resource, 0)
                    for resource, amount in node.allocatable.items()
                }
        return Nodes(self.nodes, self._left, self._eligible)

    def _count(self, pod: _Bound, times: int) -> None:
        taken = self._taken.setdefault(pod.node, {})
        for name, amount in pod.shape.requests:
            taken[name] = taken.get(name, 0) + amount * times
            if not taken[name]:
                del taken[name]
        if not taken:
            del self._taken[pod.node]
        self._left.pop(pod.node, None)
