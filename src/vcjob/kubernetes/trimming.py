"""What the operator reads of the objects of each kind; everything else is left out.

Each ``TypedDict`` here lists the fields that somebody reads: of pods ``core/facts.py``,
``controller/records.py`` and ``core/scheduling/``; of the others also whoever compares them with
what is wanted (``core/supporting.py``). Nobody writes an object back: writes are merge patches, so
that what is not read here stays as it is.

``metadata.managedFields`` is in none of them: it is as large as the object itself.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from vcjob.api import kinds, names
from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.kubernetes.readers import Reader


class _Owner(TypedDict, total=False):
    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool | None


class _Metadata(TypedDict, total=False):
    name: str
    namespace: str
    uid: str
    resourceVersion: str
    generation: int
    creationTimestamp: str | None
    deletionTimestamp: str | None
    deletionGracePeriodSeconds: int | None
    labels: dict[str, str] | None
    annotations: dict[str, str] | None
    ownerReferences: list[_Owner] | None
    finalizers: list[str] | None


# Pods.

_MARKS = (
    *(names.GROUP_NAME, names.JOB_NAME, names.JOB_RETRY_COUNT, names.JOB_VERSION),
    *(names.OUT_OF_SYNC, names.QUEUE_NAME, names.TASK_INDEX, names.TASK_SPEC),
)
# mypy wants the names written out; they stand in api/names.py and nowhere else.
_PodMarks = TypedDict("_PodMarks", dict.fromkeys(_MARKS, str), total=False)  # type: ignore[misc]
"""Labels and annotations of pods: those that tell their place in a Job or gang."""


class _PodMetadata(TypedDict, total=False):
    name: str
    namespace: str
    uid: str
    resourceVersion: str
    creationTimestamp: str | None
    deletionTimestamp: str | None
    deletionGracePeriodSeconds: int | None
    labels: _PodMarks | None
    annotations: _PodMarks | None
    ownerReferences: list[_Owner] | None


class _Terminated(TypedDict, total=False):
    exitCode: int
    finishedAt: str | None
    reason: str


class _Waiting(TypedDict, total=False):
    reason: str
    message: str


class _ContainerState(TypedDict, total=False):
    terminated: _Terminated | None
    waiting: _Waiting | None


class _ContainerStatus(TypedDict, total=False):
    ready: bool
    restartCount: int
    state: _ContainerState | None
    lastState: _ContainerState | None


class _Condition(TypedDict, total=False):
    type: str
    status: str
    reason: str


class _PodCondition(_Condition, total=False):
    message: str


class _PodStatus(TypedDict, total=False):
    phase: str
    reason: str
    conditions: list[_PodCondition] | None
    containerStatuses: list[_ContainerStatus] | None
    initContainerStatuses: list[_ContainerStatus] | None


class _Resources(TypedDict, total=False):
    requests: dict[str, Any] | None
    limits: dict[str, Any] | None


class _Container(TypedDict, total=False):
    resources: _Resources | None
    restartPolicy: str


class _NodeAffinity(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: Any


class _Affinity(TypedDict, total=False):
    nodeAffinity: _NodeAffinity | None


class _PodSpec(TypedDict, total=False):
    nodeName: str
    schedulerName: str
    schedulingGates: list[Any] | None
    nodeSelector: dict[str, str] | None
    affinity: _Affinity | None
    tolerations: list[Any] | None
    priority: int | None
    priorityClassName: str
    overhead: dict[str, Any] | None
    resources: _Resources | None
    containers: list[_Container] | None
    initContainers: list[_Container] | None


class _Pod(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: _PodMetadata
    status: _PodStatus


class _PlacedPod(_Pod, total=False):
    spec: _PodSpec


_TELLING_CONDITIONS = ("DisruptionTarget", "PodScheduled")


def _finish_pod(pod: Object) -> None:
    """Leave out conditions that decide nothing: most pods have five."""
    status = pod.get("status")
    if status and (conditions := status.get("conditions")):
        status["conditions"] = [
            condition for condition in conditions if condition.get("type") in _TELLING_CONDITIONS
        ]


# Other kinds.


class _Named(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: _Metadata


class _Described(_Named, total=False):
    spec: Any
    status: Any


class _Command(_Named, total=False):
    action: Any
    target: Any
    reason: Any
    message: Any


class _Data(_Named, total=False):
    type: str
    data: dict[str, Any] | None
    binaryData: dict[str, Any] | None
    immutable: bool | None


class _PriorityClass(_Named, total=False):
    value: int
    globalDefault: bool
    preemptionPolicy: str


class _Event(_Named, total=False):
    involvedObject: Any
    type: str
    reason: str
    message: str
    count: int
    firstTimestamp: str | None
    lastTimestamp: str | None


class _NodeSpec(TypedDict, total=False):
    unschedulable: bool
    taints: list[Any] | None


class _NodeStatus(TypedDict, total=False):
    allocatable: dict[str, Any] | None
    capacity: dict[str, Any] | None
    conditions: list[_Condition] | None


class _Node(_Named, total=False):
    spec: _NodeSpec
    status: _NodeStatus


READERS: Mapping[Kind, Reader] = {
    kinds.JOB: Reader(_Described),
    kinds.COMMAND: Reader(_Command),
    kinds.POD_GROUP: Reader(_Described),
    kinds.QUEUE: Reader(_Described),
    kinds.POD: Reader(_Pod, _finish_pod),
    kinds.SERVICE: Reader(_Described),
    kinds.CONFIG_MAP: Reader(_Data),
    kinds.SECRET: Reader(_Data),
    kinds.PERSISTENT_VOLUME_CLAIM: Reader(_Named),
    kinds.EVENT: Reader(_Event),
    kinds.NETWORK_POLICY: Reader(_Described),
    kinds.PRIORITY_CLASS: Reader(_PriorityClass),
    kinds.NODE: Reader(_Node),
}
"""How the controller reads objects. Kinds that are not here are read whole."""

PLACING_READERS: Mapping[Kind, Reader] = {**READERS, kinds.POD: Reader(_PlacedPod, _finish_pod)}
"""How whoever places pods on nodes reads objects: pods with what they request of a node."""
