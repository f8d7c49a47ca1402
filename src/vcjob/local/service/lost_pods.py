"""Pods whose engine ended under them: they have failed, and their Jobs' policies are to act.

The reason ``NodeLost`` makes it an eviction to the controller. Containers get what a kubelet says
of those that it cannot find any more: reason ``ContainerStatusUnknown``, exit code 137. Pods
of which no container had begun, because they lacked something, are begun anew instead.
"""

from typing import Any

from vcjob.api.kinds import POD
from vcjob.api.types import Object
from vcjob.core.times import timestamp
from vcjob.local.agent.podphase import has_begun
from vcjob.local.store import Store

REASON = "NodeLost"
_MESSAGE = "the engine that ran this pod ended, and its containers with it"
_KILLED = 137


async def fail_lost_pods(store: Store, node: str, now: float) -> int:
    """Write down that no pod of ``node`` runs any more; returns how many have failed by that.

    To be called before anybody acts on pods. Raises StorageFailed.
    """
    failed = 0
    for pod in (await store.select(POD, None, lambda pod: _was_set_up(pod, node))).items:
        metadata = pod["metadata"]
        await store.modify(
            POD,
            metadata["namespace"],
            metadata["name"],
            lambda old: {**old, "status": _afterwards(old["status"], now)},
            subresource="status",
        )
        failed += has_begun(pod["status"])
    return failed


def _was_set_up(pod: Object, node: str) -> bool:
    """Whether something of it may have been there: one that was only bound can still start."""
    status = pod.get("status") or {}
    if (pod.get("spec") or {}).get("nodeName") != node:
        return False
    return status.get("phase") not in ("Succeeded", "Failed") and bool(status.get("startTime"))


def _afterwards(status: Object, now: float) -> Object:
    return _lost(status, now) if has_begun(status) else _only_bound(status)


def _only_bound(status: Object) -> Object:
    gone = ("startTime", "podIP", "podIPs")
    return {field: value for field, value in status.items() if field not in gone}


def _lost(status: Object, now: float) -> Object:
    when = timestamp(now)
    lost = {
        **status,
        "phase": "Failed",
        "reason": REASON,
        "message": _MESSAGE,
        "conditions": [_condition(one, when) for one in status.get("conditions") or ()],
    }
    for field in ("initContainerStatuses", "containerStatuses"):
        if field in status:
            lost[field] = [_container(one, when) for one in status[field]]
    return lost


def _condition(condition: Object, when: str) -> Object:
    if condition.get("type") not in ("Ready", "ContainersReady"):
        return condition
    changed = {**condition, "status": "False", "reason": "PodFailed"}
    if condition.get("status") != "False":
        changed["lastTransitionTime"] = when
    return changed


def _container(container: Object, when: str) -> Object:
    state: dict[str, Any] = container.get("state") or {}
    if "terminated" in state:
        return container
    terminated = {
        "exitCode": _KILLED,
        "reason": "ContainerStatusUnknown",
        "message": _MESSAGE,
        "finishedAt": when,
    }
    if "running" in state:
        terminated["startedAt"] = state["running"].get("startedAt")
    if "containerID" in container:
        terminated["containerID"] = container["containerID"]
    return {**container, "ready": False, "started": False, "state": {"terminated": terminated}}
