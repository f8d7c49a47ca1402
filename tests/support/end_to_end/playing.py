"""What a kubelet writes: a Node, and how pods are. Here nothing runs."""

import time
from typing import Any

from vcjob.api.kinds import NODE
from vcjob.api.types import Object
from vcjob.core.times import timestamp
from vcjob.kubernetes.cluster import KubernetesCluster

PLAYED = "vcjob-test.example/node"
"""Label and taint of nodes that are played."""
_AMOUNTS = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}
_ADDRESSES = {"podIP": "10.99.0.2", "podIPs": [{"ip": "10.99.0.2"}], "hostIP": "10.99.0.1"}
_CONDITIONS = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


async def make_node(cluster: KubernetesCluster, name: str) -> None:
    """A node that is ready, and repels whoever is not sent to it."""
    spec = {"taints": [{"key": PLAYED, "effect": "NoSchedule"}]}
    await cluster.create(NODE, {"metadata": {"name": name, "labels": {PLAYED: name}}, "spec": spec})
    now = timestamp(time.time())
    ready = {"type": "Ready", "status": "True", "reason": "Played", "message": "by a test",
             "lastHeartbeatTime": now, "lastTransitionTime": now}  # fmt: skip
    status = {"capacity": _AMOUNTS, "allocatable": _AMOUNTS, "conditions": [ready]}
    await cluster.patch(NODE, "", name, {"status": status}, subresource="status")
    await cluster.patch(NODE, "", name, {"spec": spec})  # servers add that it is not ready


def for_node(job: Object, node: str) -> Object:
    """The Job with pods that a scheduler can bind to a played node, and to no other.

    Where a Job is not as Jobs are it stays as it is: servers say why they refuse it.
    """
    spec = job.get("spec") or {}
    if not isinstance(spec.get("tasks"), list):
        return job
    return {**job, "spec": {**spec, "tasks": [_for_node(task, node) for task in spec["tasks"]]}}


def _for_node(task: Any, node: str) -> Any:
    template = task.get("template") if isinstance(task, dict) else None
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return task
    spec = template["spec"]
    tolerations = [*(spec.get("tolerations") or ()), {"key": PLAYED, "operator": "Exists"}]
    selector = {**(spec.get("nodeSelector") or {}), PLAYED: node}
    spec = {**spec, "nodeSelector": selector, "tolerations": tolerations}
    return {**task, "template": {**template, "spec": spec}}


def running(pod: Object) -> Object:
    """The status of a pod that runs, and is ready."""
    now = timestamp(time.time())
    conditions = [{"type": one, "status": "True", "lastTransitionTime": now} for one in _CONDITIONS]
    told = {"startTime": now, "conditions": conditions, **_ADDRESSES}
    return {**_status(pod, "Running", {"running": {"startedAt": now}}), **told}


def ended(pod: Object, exit_code: int) -> Object:
    """The status of a pod whose containers have ended for good."""
    phase = "Failed" if exit_code else "Succeeded"
    return _status(pod, phase, {"terminated": _end(exit_code)})


def restarted(pod: Object, count: int, exit_code: int) -> Object:
    """The status of a pod whose containers have ended, and been started again ``count`` times."""
    state = {"running": {"startedAt": timestamp(time.time())}}
    last = {"lastState": {"terminated": _end(exit_code)}, "restartCount": count}
    return _status(pod, "Running", state, last)


def _end(exit_code: int) -> Object:
    now = timestamp(time.time())
    reason = "Error" if exit_code else "Completed"
    return {"exitCode": exit_code, "reason": reason, "startedAt": now, "finishedAt": now}


def _status(pod: Object, phase: str, state: Object, more: Any = None) -> Object:
    containers = [
        {"name": one["name"], "image": one["image"], "imageID": "", "state": state,
         "ready": phase == "Running", "restartCount": 0, **(more or {})}
        for one in pod["spec"]["containers"]
    ]  # fmt: skip
    return {"phase": phase, "containerStatuses": containers}
