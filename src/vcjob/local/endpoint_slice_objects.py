"""Which EndpointSlices a Service is to have: a pure function of it and its namespace's pods.

Source: Kubernetes documentation, "EndpointSlices", and the API reference of
``discovery.k8s.io/v1``.
"""

import base64
import hashlib
from collections.abc import Iterable

from vcjob.api.kinds import ENDPOINT_SLICE, POD, SERVICE
from vcjob.api.types import Object, key_of
from vcjob.local.names.records import ENDED, target_of

SERVICE_LABEL = "kubernetes.io/service-name"
MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.vcjob"

_MOST_ENDPOINTS = 1000
_SUFFIX_LENGTH = 5


def slices_of(service: Object, pods: Iterable[Object]) -> list[Object]:
    """The EndpointSlices that a Service is to have, given the pods of its namespace.

    One even without endpoints; more where there are over 1,000, or where a named port has another
    number in some pods. None without a selector, or for the type ExternalName.
    """
    spec = service.get("spec") or {}
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return []
    groups: dict[tuple[tuple[str, str, int], ...], list[Object]] = {}
    for pod in sorted(pods, key=key_of):
        if _selects(spec["selector"], pod) and _has_address(pod):
            groups.setdefault(_ports(spec, pod), []).append(_endpoint(service, pod))
    parts = [
        (ports, endpoints[start : start + _MOST_ENDPOINTS])
        for ports, endpoints in sorted(groups.items(), key=lambda group: group[0])
        for start in range(0, len(endpoints), _MOST_ENDPOINTS)
    ]
    return [_slice(service, number, *part) for number, part in enumerate(parts or [((), [])])]


def is_as(found: Object, wanted: Object) -> bool:
    """Whether a slice that is there says what ``slices_of`` wants of it."""
    return (
        labels_of(wanted).items() <= labels_of(found).items()
        and found["metadata"].get("ownerReferences") == wanted["metadata"]["ownerReferences"]
        and all(
            found.get(field) == wanted[field] for field in ("addressType", "endpoints", "ports")
        )
    )


def labels_of(obj: Object) -> Object:
    """The labels of any object."""
    labels: Object = obj["metadata"].get("labels") or {}
    return labels


def _selects(selector: Object, pod: Object) -> bool:
    return selector.items() <= labels_of(pod).items()


def _has_address(pod: Object) -> bool:
    status = pod.get("status") or {}
    return bool(status.get("podIP")) and status.get("phase") not in ENDED


def _ports(spec: Object, pod: Object) -> tuple[tuple[str, str, int], ...]:
    """Name, protocol and number of a Service's ports in a pod; without those it does not have."""
    found = []
    for port in spec.get("ports") or ():
        protocol, target = port.get("protocol") or "TCP", target_of(port)
        number = target if isinstance(target, int) else _named_port(pod, target, protocol)
        if number is not None:
            found.append((port.get("name") or "", protocol, number))
    return tuple(found)


def _named_port(pod: Object, name: str, protocol: str) -> int | None:
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == name and (port.get("protocol") or "TCP") == protocol:
                number: int = port["containerPort"]
                return number
    return None


def _endpoint(service: Object, pod: Object) -> Object:
    spec, status, metadata = pod["spec"], pod["status"], pod["metadata"]
    conditions = status.get("conditions") or ()
    serving = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    terminating = bool(metadata.get("deletionTimestamp"))
    always = bool(service["spec"].get("publishNotReadyAddresses"))
    endpoint: Object = {
        "addresses": [status["podIP"]],
        "conditions": {
            "ready": always or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {
            "kind": POD.kind,
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]:
        endpoint = {**endpoint, "hostname": spec["hostname"]}
    if spec.get("nodeName"):
        endpoint = {**endpoint, "nodeName": spec["nodeName"]}
    return endpoint


def _slice(
    service: Object,
    number: int,
    ports: tuple[tuple[str, str, int], ...],
    endpoints: list[Object],
) -> Object:
    metadata = service["metadata"]
    owner = {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": ENDPOINT_SLICE.api_version,
        "kind": ENDPOINT_SLICE.kind,
        "metadata": {
            "name": f"{metadata['name']}-{_suffix(metadata['uid'], number)}",
            "namespace": metadata["namespace"],
            "labels": {SERVICE_LABEL: metadata["name"], MANAGER_LABEL: MANAGER},
            "ownerReferences": [owner],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [
            {"name": name, "protocol": protocol, "port": port} for name, protocol, port in ports
        ],
    }


def _suffix(uid: str, number: int) -> str:
    """Of a Service of the same name that was made anew the slices have other names."""
    digest = hashlib.sha256(f"{uid}/{number}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:_SUFFIX_LENGTH]
