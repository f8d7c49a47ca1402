"""What is known of the cluster's nodes, and which pods a node takes.

Source: Kubernetes documentation, "Assigning Pods to Nodes", "Taints and Tolerations", "Node
Status"; Kubernetes API reference, "NodeSelectorRequirement".
"""

from collections.abc import Mapping

import msgspec

from vcjob.api.types import Object
from vcjob.core.scheduling.shapes import Demands, Requirement, Toleration, resource_amounts

_REPELLING = ("NoSchedule", "NoExecute")
_CORDONED_TAINT = "node.kubernetes.io/unschedulable"


class Taint(msgspec.Struct, frozen=True):
    """A taint that keeps pods away."""

    key: str
    value: str
    effect: str


class NodeFacts(msgspec.Struct, frozen=True):
    """One node. ``allocatable`` is what pods can have of it, in billionths."""

    name: str
    labels: Mapping[str, str] = {}
    allocatable: Mapping[str, int] = {}
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    is_cordoned: bool = False


def node_facts(node: Object) -> NodeFacts:
    """The facts of a node, from its object."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    taints = tuple(
        Taint(one.get("key") or "", one.get("value") or "", one["effect"])
        for one in spec.get("taints") or ()
        if one.get("effect") in _REPELLING
    )
    is_ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    return NodeFacts(
        metadata["name"],
        metadata.get("labels") or {},
        resource_amounts(status.get("allocatable")),
        taints,
        is_ready and not metadata.get("deletionTimestamp"),
        spec.get("unschedulable") is True,
    )


def objection(node: NodeFacts, demands: Demands) -> str:
    """Why a node takes no pods of these demands, whatever room it has; empty if it does.

    The phrases complete "so many nodes …".
    """
    if not node.is_ready:
        return "not ready"
    if node.is_cordoned and not _tolerates_cordon(demands):
        return "cordoned"
    for taint in node.taints:
        cordon = node.is_cordoned and taint.key == _CORDONED_TAINT
        if not cordon and not any(_tolerates(one, taint) for one in demands.tolerations):
            shown = f"{taint.key}={taint.value}" if taint.value else taint.key
            return f"tainted {shown}:{taint.effect}"
    if any(node.labels.get(key) != value for key, value in demands.selector):
        return "outside the node selector"
    if demands.terms is not None and not any(
        (term.labels or term.fields)
        and all(_fulfils(node.labels, one) for one in term.labels)
        and all(_fulfils({"metadata.name": node.name}, one) for one in term.fields)
        for term in demands.terms
    ):
        return "outside the node affinity"
    return ""


def _tolerates_cordon(demands: Demands) -> bool:
    cordon = Taint(_CORDONED_TAINT, "", "NoSchedule")
    return any(_tolerates(one, cordon) for one in demands.tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    same = toleration.key == taint.key and toleration.value == taint.value
    return toleration.operator == "Equal" and same


def _fulfils(labels: Mapping[str, str], requirement: Requirement) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, requirement)
        case _:
            return False


def _compares(value: str | None, requirement: Requirement) -> bool:
    try:
        [limit] = map(int, requirement.values)
        number = int(value or "")
    except ValueError:
        return False
    return number > limit if requirement.operator == "Gt" else number < limit
