"""Which pods a node takes: readiness, cordons, taints, selectors, affinity."""

from typing import Any

import pytest

from vcjob.api.types import Object
from vcjob.core.scheduling.nodes import node_facts, objection
from vcjob.core.scheduling.shapes import BILLION, pod_shape

LABELS = {"zone": "a", "disk": "ssd", "cores": "16"}
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def node(ready: str = "True", **spec: Any) -> Object:
    return {
        "metadata": {"name": "node-1", "labels": LABELS},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "3920m", "memory": "1Gi", "pods": "110", "example.com/x": 2},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def expressions(*terms: Object) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return {"affinity": {"nodeAffinity": required}}


def labels(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


def test_facts_of_a_node() -> None:
    facts = node_facts(node(taints=[GPU, {"key": "soft", "effect": "PreferNoSchedule"}]))
    assert facts.allocatable == {
        "cpu": 3_920_000_000,
        "memory": 2**30 * BILLION,
        "pods": 110 * BILLION,
        "example.com/x": 2 * BILLION,
    }
    assert [taint.key for taint in facts.taints] == ["gpu"]
    assert facts.is_ready


@pytest.mark.parametrize(
    ("given", "spec", "why"),
    [
        (node(), {}, ""),
        (node("False"), {}, "not ready"),
        (node("Unknown"), {"tolerations": [{"operator": "Exists"}]}, "not ready"),
        (node(unschedulable=True), {}, "cordoned"),
        (node(unschedulable=True, taints=[
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]), {}, "cordoned"),
        (node(unschedulable=True), {"tolerations": [{"operator": "Exists"}]}, ""),
        (node(taints=[GPU]), {}, "tainted gpu=yes:NoSchedule"),
        (node(taints=[{"key": "gone", "effect": "NoExecute"}]), {}, "tainted gone:NoExecute"),
        (node(taints=[GPU]), {"tolerations": [{"key": "gpu", "value": "yes"}]}, ""),
        (node(taints=[GPU]), {"tolerations": [{"key": "gpu", "value": "no"}]},
         "tainted gpu=yes:NoSchedule"),
        (node(taints=[GPU]), {"tolerations": [{"key": "gpu", "operator": "Exists"}]}, ""),
        (node(taints=[GPU]), {"tolerations": [
            {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]},
         "tainted gpu=yes:NoSchedule"),
        (node(taints=[GPU, {"key": "two", "effect": "NoSchedule"}]),
         {"tolerations": [{"key": "gpu", "operator": "Exists"}]}, "tainted two:NoSchedule"),
        (node(), {"nodeSelector": {"zone": "a", "disk": "ssd"}}, ""),
        (node(), {"nodeSelector": {"zone": "b"}}, "outside the node selector"),
        (node(), {"nodeSelector": {"none": ""}}, "outside the node selector"),
        (node(), expressions(labels("zone", "In", "a", "b")), ""),
        (node(), expressions(labels("zone", "In", "b")), "outside the node affinity"),
        (node(), expressions(labels("zone", "In", "b"), labels("disk", "Exists")), ""),
        (node(), expressions({"matchExpressions": [
            {"key": "zone", "operator": "Exists"},
            {"key": "disk", "operator": "DoesNotExist"}]}), "outside the node affinity"),
        (node(), expressions(labels("none", "NotIn", "x")), ""),
        (node(), expressions(labels("zone", "NotIn", "a")), "outside the node affinity"),
        (node(), expressions(labels("cores", "Gt", "8")), ""),
        (node(), expressions(labels("cores", "Lt", "8")), "outside the node affinity"),
        (node(), expressions(labels("zone", "Gt", "8")), "outside the node affinity"),
        (node(), expressions(labels("none", "Gt", "8")), "outside the node affinity"),
        (node(), expressions(labels("cores", "Near", "8")), "outside the node affinity"),
        (node(), expressions({"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}), ""),
        (node(), expressions({"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}),
         "outside the node affinity"),
        (node(), expressions({}), "outside the node affinity"),
        (node(), expressions(), "outside the node affinity"),
        (node(), {"affinity": {"nodeAffinity": {}}}, ""),
    ],
)  # fmt: skip
def test_a_node_takes_pods_or_says_why_not(given: Object, spec: Object, why: str) -> None:
    assert objection(node_facts(given), pod_shape(spec).demands) == why


def test_a_node_that_is_being_deleted_is_not_ready() -> None:
    leaving = node()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert objection(node_facts(leaving), pod_shape({}).demands) == "not ready"
