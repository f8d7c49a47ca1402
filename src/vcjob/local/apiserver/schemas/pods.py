"""Pods. Source: Kubernetes API reference."""

from collections.abc import Mapping

from vcjob.api.kinds import POD, Kind
from vcjob.api.schema.pods import POD_SPEC
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    TEXT,
    TIME,
    ListOf,
    Record,
    field,
    record,
    required,
)
from vcjob.local.apiserver.schemas.parts import CONDITIONS, kept

_CONTAINER_STATUSES = ListOf(
    record(
        "ContainerStatus",
        {
            "containerID": TEXT,
            "image": TEXT,
            "imageID": TEXT,
            "name": required(TEXT, "Name of the container."),
            "ready": field(BOOLEAN, "Whether its readiness probe succeeds."),
            "restartCount": field(INTEGER, "How often it was started again."),
            "started": BOOLEAN,
            "state": field(ANYTHING, "waiting, running or terminated, with details."),
            "lastState": field(ANYTHING, "How it ended before the latest restart."),
        },
    )
)

_POD_STATUS = record(
    "PodStatus",
    {
        "phase": field(TEXT, "Pending, Running, Succeeded, Failed or Unknown."),
        "conditions": field(CONDITIONS, "PodScheduled, Initialized, ContainersReady, Ready."),
        "containerStatuses": field(_CONTAINER_STATUSES, "How each container is."),
        "initContainerStatuses": field(_CONTAINER_STATUSES, "How each init container is."),
        "ephemeralContainerStatuses": _CONTAINER_STATUSES,
        "hostIP": TEXT,
        "message": field(TEXT, "Why the pod is in this phase, in one sentence."),
        "nominatedNodeName": TEXT,
        "podIP": field(TEXT, "Address of the pod."),
        "podIPs": ListOf(record("PodIP", {"ip": required(TEXT)}), keys=("ip",)),
        "hostIPs": ListOf(record("HostIP", {"ip": required(TEXT)}), keys=("ip",)),
        "observedGeneration": INTEGER,
        "qosClass": TEXT,
        "reason": field(TEXT, "Why the pod is in this phase, in one word."),
        "startTime": TIME,
    },
)

OF_KINDS: Mapping[Kind, Record] = {
    POD: kept(
        "Pod",
        {
            "spec": required(POD_SPEC, "What shall run."),
            "status": field(_POD_STATUS, "What became of it. Written by the node."),
        },
        "Containers that run together, with one address.",
    ),
}
"""Pods."""
