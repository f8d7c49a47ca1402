"""What the operator keeps of objects: as much as somebody reads, and no more."""

import sys
from typing import Any

import msgspec
import pytest
from full_pods import OWNER, full_pod

from vcjob.api import kinds
from vcjob.core.facts import pod_facts
from vcjob.core.scheduling.ledger import Ledger
from vcjob.core.scheduling.shapes import pod_shape
from vcjob.kubernetes.trimming import PLACING_READERS, READERS

TIME = "2026-01-01T00:01:00Z"


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "main", "ready": False, "restartCount": 1, "state": {}, **fields}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "finishedAt": TIME, "reason": reason}}


REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
           "message": "0/3 nodes are available: 3 Insufficient cpu."}  # fmt: skip


STATUSES: dict[str, dict[str, Any]] = {
    "running": {},
    "pending": {"phase": "Pending", "containerStatuses": None, "conditions": None},
    "failed": {"phase": "Failed", "containerStatuses": [container(state=ended(3))]},
    "restarted": {"containerStatuses": [container(lastState=ended(137), restartCount=4)]},
    "image": {
        "phase": "Pending",
        "containerStatuses": [
            container(state={"waiting": {"reason": "ErrImagePull", "message": "no such image"}})
        ],
    },
    "no node": {"phase": "Pending", "containerStatuses": None, "conditions": [REFUSED]},
    "memory": {"containerStatuses": [container(state=ended(137, "OOMKilled"))]},
    "init": {"initContainerStatuses": [container(state=ended(9))]},
    "evicted": {"phase": "Failed", "reason": "Evicted"},
    "disrupted": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
}


@pytest.mark.parametrize("readers", [READERS, PLACING_READERS], ids=["jobs", "places"])
@pytest.mark.parametrize("status", STATUSES.values(), ids=STATUSES)
@pytest.mark.parametrize("leaving", [False, True])
def test_decisions_about_a_pod_are_the_same(
    status: dict[str, Any], leaving: bool, readers: Any
) -> None:
    pod = full_pod(7, **status)
    if leaving:
        pod["metadata"] |= {"deletionTimestamp": TIME, "deletionGracePeriodSeconds": 30}
    trimmed = readers[kinds.POD].object(msgspec.json.encode(pod))
    assert pod_facts(trimmed) == pod_facts(pod) is not None
    assert trimmed["metadata"]["ownerReferences"][0]["uid"] == OWNER
    assert trimmed["metadata"]["ownerReferences"][0]["controller"] is True


def test_a_pod_takes_the_same_place_on_a_node() -> None:
    pod = full_pod(7)
    trimmed = PLACING_READERS[kinds.POD].object(msgspec.json.encode(pod))
    assert pod_shape(trimmed["spec"]) == pod_shape(pod["spec"])
    for field in ("nodeName", "schedulerName", "schedulingGates", "priorityClassName", "priority"):
        assert trimmed["spec"][field] == pod["spec"][field]
    books = [Ledger(), Ledger()]
    for ledger, known in zip(books, (pod, trimmed), strict=True):
        ledger.enter_pod(known)
    assert books[0].gangs == books[1].gangs


def test_it_is_known_why_a_pod_has_no_node() -> None:
    pod = full_pod(7, phase="Pending", conditions=[REFUSED])
    trimmed = PLACING_READERS[kinds.POD].object(msgspec.json.encode(pod))
    assert trimmed["status"]["conditions"] == [REFUSED]


def size(value: Any) -> int:
    """Bytes of a JSON value in memory, shared strings counted each time."""
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(size(one) for one in value.values())
    if isinstance(value, list):
        return sys.getsizeof(value) + sum(map(size, value))
    return sys.getsizeof(value)


def test_what_is_kept_of_a_pod_is_a_fraction_of_it() -> None:
    pod = full_pod()
    trimmed = READERS[kinds.POD].object(msgspec.json.encode(pod))
    assert size(trimmed) < size(pod) / 4
    assert "cni.example/networks" not in trimmed["metadata"]["annotations"]


CONTENT = {
    kinds.JOB: {"spec": {"tasks": [{"x": 1}]}, "status": {"state": {"phase": "Running"}}},
    kinds.COMMAND: {"action": "AbortJob", "target": {"kind": "Job", "uid": "u"}, "reason": "r"},
    kinds.POD_GROUP: {"spec": {"minMember": 2}, "status": {"phase": "Running", "conditions": []}},
    kinds.QUEUE: {"spec": {"weight": 1}, "status": {"state": "Open"}},
    kinds.SERVICE: {"spec": {"clusterIP": "None"}, "status": {}},
    kinds.CONFIG_MAP: {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}},
    kinds.SECRET: {"type": "Opaque", "data": {"a": "Yg=="}},
    kinds.NETWORK_POLICY: {"spec": {"podSelector": {}}},
    kinds.PRIORITY_CLASS: {"value": 100},
    kinds.EVENT: {"type": "Normal", "reason": "r", "message": "m", "count": 3},
    kinds.NODE: {
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready"}]},
    },
    kinds.PERSISTENT_VOLUME_CLAIM: {},
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTENT, ids=str)
def test_other_objects_lose_only_what_nobody_reads(kind: kinds.Kind) -> None:
    kept = {
        "metadata": {
            "name": "a", "namespace": "here", "uid": "u", "resourceVersion": "1", "generation": 2,
            "creationTimestamp": TIME, "deletionTimestamp": TIME, "labels": {"any": "label"},
            "annotations": {"any": "annotation"}, "finalizers": ["f"],
            "ownerReferences": [{"apiVersion": "v", "kind": "Job", "name": "j", "uid": "o",
                                 "controller": True}],
        },
        **CONTENT[kind],
    }  # fmt: skip
    whole = {**kept, "metadata": {**kept["metadata"], "managedFields": [{"manager": "kubectl"}]}}
    assert READERS[kind].object(msgspec.json.encode(whole)) == kept
