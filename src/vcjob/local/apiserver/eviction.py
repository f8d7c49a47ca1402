"""Evictions: the mark that a pod bears before it is deleted on behalf of one.

Source: Kubernetes documentation, "Disruptions", pod disruption conditions; "API-initiated
Eviction".
"""

from vcjob.api.kinds import POD
from vcjob.api.types import Object
from vcjob.core.times import timestamp
from vcjob.local.store import Store

_FINAL_PHASES = ("Succeeded", "Failed")


async def mark_disrupted(
    store: Store, namespace: str, name: str, *, uid: str, resource_version: str, now: float
) -> Object:
    """Put the condition DisruptionTarget on a pod that has not ended; returns the pod.

    Raises NotFound, and Conflict if it is not that very pod.
    """
    pod = await store.get(POD, namespace, name)
    status = pod.get("status") or {}
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": timestamp(now),
    }
    others = [c for c in status.get("conditions") or () if c["type"] != condition["type"]]
    is_over = status.get("phase") in _FINAL_PHASES or pod["metadata"].get("deletionTimestamp")
    patch = {} if is_over else {"status": {"conditions": [*others, condition]}}
    return await store.patch(
        POD, namespace, name, patch,
        subresource="status", uid=uid, resource_version=resource_version,
    )  # fmt: skip
