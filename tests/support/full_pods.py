"""Pods as API servers give them: with all that a server, a scheduler and a kubelet write."""

from typing import Any

OWNER = "0b0b7f7e-4e4e-4b4b-9b9b-000000000000"
_TIME = "2026-01-01T00:00:00Z"


def full_pod(index: int = 0, **status: Any) -> dict[str, Any]:
    """A pod of a Job of its own, about 5 KB of JSON; ``status`` is written over its status."""
    names = {
        "volcano.sh/job-name": "mnist",
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": "worker",
        "volcano.sh/queue-name": "default",
    }
    fields: dict[str, Any] = {
        f"f:VC_{number}": {"f:name": {}, "f:value": {}} for number in range(8)
    }
    manager = {"manager": "vcjob", "operation": "Update", "apiVersion": "v1", "time": _TIME,
               "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:env": fields}}}  # fmt: skip
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]  # fmt: skip
    expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"mnist-worker-{index}",
            "namespace": "default",
            "uid": f"0b0b7f7e-4e4e-4b4b-9b9b-{index + 1:012}",
            "resourceVersion": str(1000 + index),
            "creationTimestamp": _TIME,
            "labels": {**names, "app": "mnist"},
            "annotations": {
                **names,
                "scheduling.k8s.io/group-name": f"mnist-{OWNER}",
                "volcano.sh/job-version": "3",
                "volcano.sh/job-retry-count": "1",
                "cni.example/networks": "x" * 500,
            },
            "ownerReferences": [
                {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "mnist",
                 "uid": OWNER, "controller": True, "blockOwnerDeletion": True}
            ],
            "managedFields": [manager, {**manager, "manager": "kubelet"}],
        },
        "spec": {
            "containers": [
                {
                    "name": "main", "image": "busybox", "command": ["sleep", "1"],
                    "env": [{"name": f"VC_{number}", "value": "v" * 60} for number in range(12)],
                    "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
                }
            ],
            "initContainers": [
                {"name": "proxy", "image": "proxy", "restartPolicy": "Always",
                 "resources": {"requests": {"cpu": "50m"}}}
            ],
            "volumes": [{"name": "mnist-svc", "configMap": {"name": "mnist-svc"}}],
            "overhead": {"cpu": "10m"},
            "nodeName": "node-1", "schedulerName": "volcano", "priority": 7,
            "priorityClassName": "high", "nodeSelector": {"zone": "a"}, "tolerations": tolerations,
            "affinity": {"nodeAffinity": affinity},
            "schedulingGates": [{"name": "vcjob.dev/gang"}],
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable", "podIP": "10.0.0.1", "startTime": _TIME,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": _TIME}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {"name": "main", "ready": True, "restartCount": 0, "image": "busybox",
                 "containerID": "containerd://0", "lastState": {},
                 "state": {"running": {"startedAt": _TIME}}}
            ],
            **status,
        },
    }  # fmt: skip
