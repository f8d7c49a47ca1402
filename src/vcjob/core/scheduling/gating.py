"""Pods as the scheduler of a cluster is to get them.

Where Volcano's scheduler runs, pods name it and are left as they are. Where it does not, they are
for Kubernetes' own scheduler, and a scheduling gate of ours keeps it from binding them until their
gang may start. Source: Kubernetes documentation, "Pod Scheduling Readiness".
"""

from collections.abc import Callable
from enum import StrEnum

from vcjob.api.defaults import DEFAULT_SCHEDULER as VOLCANO_SCHEDULER
from vcjob.api.types import Object

GATE = "vcjob.dev/gang"
"""The scheduling gate that holds a pod until its gang may start."""
KUBERNETES_SCHEDULER = "default-scheduler"


class GangScheduling(StrEnum):
    """Who admits gangs on a cluster: Volcano's scheduler, or we."""

    VOLCANO = "volcano"
    BUILTIN = "builtin"


def pod_adapter(scheduling: GangScheduling) -> Callable[[Object], Object]:
    """What is done to each pod before it is created; the pod it is given stays as it is."""
    return _as_it_is if scheduling is GangScheduling.VOLCANO else gated


def gated(pod: Object) -> Object:
    """The pod for Kubernetes' own scheduler, gated until its gang may start.

    A pod that names another scheduler than Volcano's is that one's, and one that names its node is
    nobody's: they stay as they are.
    """
    spec = pod["spec"]
    if spec.get("schedulerName") not in (None, "", VOLCANO_SCHEDULER) or spec.get("nodeName"):
        return pod
    others = [one for one in spec.get("schedulingGates") or () if one.get("name") != GATE]
    gates = [*others, {"name": GATE}]
    return {
        **pod,
        "spec": {**spec, "schedulerName": KUBERNETES_SCHEDULER, "schedulingGates": gates},
    }


def _as_it_is(pod: Object) -> Object:
    return pod
