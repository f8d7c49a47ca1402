"""Columns of Kubernetes' own kinds, as ``kubectl get`` shows them of a cluster."""

from collections.abc import Iterable, Mapping
from typing import Any

from vcjob.api.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    ENDPOINT_SLICE,
    EVENT,
    LEASE,
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.types import Object
from vcjob.local.apiserver.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    age,
    number,
    path_column,
    text,
)
from vcjob.local.apiserver.event_shapes import EVENT_OF_EVENTS

_ACCESS = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def pod_status(pod: Object) -> str:
    """The word in the column STATUS: the reason of the first container that has trouble."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    word = status.get("reason") or status.get("phase") or "Unknown"
    init = status.get("initContainerStatuses") or []
    trouble = next((told for i, one in enumerate(init) if (told := _init_word(one, i, pod))), "")
    if trouble:
        word = trouble
    else:
        for one in reversed(status.get("containerStatuses") or []):
            word = _container_word(one.get("state") or {}) or word
        if word == "Completed" and _is_ready(status):
            word = "Running"
    if metadata.get("deletionTimestamp") and status.get("phase") not in ("Succeeded", "Failed"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(word)


def _is_ready(status: Object) -> bool:
    found = status.get("containerStatuses") or []
    return any(one.get("ready") and "running" in (one.get("state") or {}) for one in found)


def _init_word(one: Object, index: int, pod: Object) -> str:
    state = one.get("state") or {}
    if ended := state.get("terminated"):
        return f"Init:{_ended(ended)}" if ended.get("exitCode") else ""
    always = {
        item.get("name")
        for item in pod["spec"].get("initContainers") or ()
        if item.get("restartPolicy") == "Always"
    }
    if one.get("name") in always and one.get("started"):
        return ""
    waiting = (state.get("waiting") or {}).get("reason") or ""
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{index}/{len(pod['spec'].get('initContainers') or ())}"


def _container_word(state: Object) -> str:
    if waiting := (state.get("waiting") or {}).get("reason"):
        return str(waiting)
    return _ended(state["terminated"]) if state.get("terminated") else ""


def _ended(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _ready(pod: Object) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ready = sum(1 for one in statuses if one.get("ready"))
    return f"{ready}/{len((pod.get('spec') or {}).get('containers') or ())}"


def _restarts(pod: Object, now: float) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    count = sum(one.get("restartCount") or 0 for one in statuses)
    ends = [
        ended.get("finishedAt") or ""
        for one in statuses
        if (ended := (one.get("lastState") or {}).get("terminated"))
    ]
    return f"{count} ({age(max(ends), now)} ago)" if count and any(ends) else str(count)


def _gates(pod: Object) -> str:
    gates = (pod.get("spec") or {}).get("readinessGates") or []
    conditions = (pod.get("status") or {}).get("conditions") or []
    true = {one.get("type") for one in conditions if one.get("status") == "True"}
    met = sum(1 for gate in gates if gate.get("conditionType") in true)
    return f"{met}/{len(gates)}" if gates else NONE


def _field(*path: str, default: str = NONE) -> Any:
    def show(obj: Object) -> Any:
        value: Any = obj
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return default if value in (None, "") else value

    return show


def _joined(items: Iterable[Any]) -> str:
    return ",".join(map(str, items)) or NONE


def _pairs(labels: Mapping[str, Any] | None) -> str:
    return _joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def _ports(service: Object) -> str:
    return _joined(
        f"{port.get('port')}{_node_port(port)}/{port.get('protocol') or 'TCP'}"
        for port in (service.get("spec") or {}).get("ports") or ()
    )


def _node_port(port: Object) -> str:
    return f":{port['nodePort']}" if port.get("nodePort") else ""


def _data_count(obj: Object) -> int:
    return len(obj.get("data") or ()) + len(obj.get("binaryData") or ())


def _node_status(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready: Object = next((one for one in conditions if one.get("type") == "Ready"), {})
    words = ["Ready" if ready.get("status") == "True" else "NotReady" if ready else "Unknown"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Object) -> str:
    start = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    return _joined(sorted(key.removeprefix(start) for key in labels if key.startswith(start)))


def _node_address(kind: str) -> Any:
    def show(node: Object) -> str:
        found = (node.get("status") or {}).get("addresses") or []
        return next((one["address"] for one in found if one.get("type") == kind), NONE)

    return show


def _claim_modes(claim: Object) -> str:
    modes = (claim.get("status") or {}).get("accessModes") or ()
    return ",".join(_ACCESS.get(mode, mode) for mode in modes)


def _event_object(event: Object) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _event_time(event: Object, now: float) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    times = ("lastTimestamp", "deprecatedLastTimestamp", "eventTime", "firstTimestamp")
    return age(series or next((event[key] for key in times if event.get(key)), ""), now)


def _event_source(event: Object) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    controller = event.get("reportingComponent") or event.get("reportingController")
    return str(source.get("component") or controller or "")


def _policy_selector(policy: Object) -> str:
    selector = (policy.get("spec") or {}).get("podSelector") or {}
    return _pairs(selector.get("matchLabels"))


def _endpoints(found: Object) -> str:
    every = [a for one in found.get("endpoints") or () for a in one.get("addresses") or ()]
    return _joined([*every[:3], *([f"+ {len(every) - 3} more..."] if len(every) > 3 else [])])


_EVENT_COLUMNS = (
    Column("Last Seen", "string", _event_time),
    text("Type", _field("type", default="")),
    text("Reason", _field("reason", default="")),
    text("Object", _event_object),
    text("Source", _event_source, wide=True),
    text("Message", lambda event: str(event.get("message") or event.get("note") or "").strip()),
    text("Count", lambda event: event.get("count") or event.get("deprecatedCount") or 1, wide=True),
    Column("Name", "string", lambda obj, _: obj["metadata"]["name"], True, format="name"),
)

COLUMNS: Mapping[Kind, tuple[Column, ...]] = {
    POD: (
        NAME,
        text("Ready", _ready),
        text("Status", pod_status),
        Column("Restarts", "string", _restarts),
        AGE,
        text("IP", _field("status", "podIP"), wide=True),
        text("Node", _field("spec", "nodeName"), wide=True),
        text("Nominated Node", _field("status", "nominatedNodeName"), wide=True),
        text("Readiness Gates", _gates, wide=True),
    ),
    SERVICE: (
        NAME,
        text("Type", _field("spec", "type", default="ClusterIP")),
        text("Cluster-IP", _field("spec", "clusterIP")),
        text("External-IP", lambda obj: _joined((obj.get("spec") or {}).get("externalIPs") or ())),
        text("Port(s)", _ports),
        AGE,
        text("Selector", lambda obj: _pairs((obj.get("spec") or {}).get("selector")), wide=True),
    ),
    CONFIG_MAP: (NAME, number("Data", _data_count), AGE),
    SECRET: (
        NAME,
        text("Type", _field("type", default="Opaque")),
        number("Data", _data_count),
        AGE,
    ),
    PERSISTENT_VOLUME_CLAIM: (
        NAME,
        text("Status", _field("status", "phase", default="Pending")),
        text("Volume", _field("spec", "volumeName", default="")),
        text("Capacity", _field("status", "capacity", "storage", default="")),
        text("Access Modes", _claim_modes),
        text("StorageClass", _field("spec", "storageClassName", default="")),
        text(
            "VolumeAttributesClass", _field("spec", "volumeAttributesClassName", default="<unset>")
        ),
        AGE,
        text("VolumeMode", _field("spec", "volumeMode", default="Filesystem"), wide=True),
    ),
    EVENT: _EVENT_COLUMNS,
    EVENT_OF_EVENTS: _EVENT_COLUMNS,
    NAMESPACE: (NAME, text("Status", _field("status", "phase", default="Active")), AGE),
    NODE: (
        NAME,
        text("Status", _node_status),
        text("Roles", _node_roles),
        AGE,
        text("Version", _field("status", "nodeInfo", "kubeletVersion", default="")),
        text("Internal-IP", _node_address("InternalIP"), wide=True),
        text("External-IP", _node_address("ExternalIP"), wide=True),
        text("OS-Image", _field("status", "nodeInfo", "osImage", default=UNKNOWN), wide=True),
        text(
            "Kernel-Version",
            _field("status", "nodeInfo", "kernelVersion", default=UNKNOWN),
            wide=True,
        ),
        text(
            "Container-Runtime",
            _field("status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN),
            wide=True,
        ),
    ),
    SERVICE_ACCOUNT: (NAME, number("Secrets", lambda obj: len(obj.get("secrets") or ())), AGE),
    NETWORK_POLICY: (NAME, text("Pod-Selector", _policy_selector), AGE),
    PRIORITY_CLASS: (
        NAME,
        number("Value", lambda obj: obj.get("value", 0)),
        Column("Global-Default", "boolean", lambda obj, _: bool(obj.get("globalDefault"))),
        AGE,
        text("PreemptionPolicy", _field("preemptionPolicy", default="PreemptLowerPriority")),
    ),
    LEASE: (NAME, text("Holder", _field("spec", "holderIdentity", default="")), AGE),
    ENDPOINT_SLICE: (
        NAME,
        text("AddressType", _field("addressType", default="")),
        text("Ports", lambda obj: _joined(p.get("port") for p in obj.get("ports") or ())),
        text("Endpoints", _endpoints),
        AGE,
    ),
    CUSTOM_RESOURCE_DEFINITION: (
        NAME,
        path_column("Created At", "string", ".metadata.creationTimestamp"),
    ),
    **dict.fromkeys(
        (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION),
        (NAME, number("Webhooks", lambda obj: len(obj.get("webhooks") or ())), AGE),
    ),
}
