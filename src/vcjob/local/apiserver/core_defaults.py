"""What Kubernetes' API server fills in where objects leave it out, as far as clients rely on it.

Source: Kubernetes API reference, the defaults of the fields. Objects are not changed; a completed
copy shares what stays the same.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from vcjob.api.kinds import NAMESPACE, PERSISTENT_VOLUME_CLAIM, POD, SECRET, SERVICE, Kind
from vcjob.api.types import Object

_POD: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "serviceAccountName": "default",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "securityContext": {},
}
_CONTAINER: Mapping[str, Any] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE: Mapping[str, Any] = {
    "failureThreshold": 3,
    "periodSeconds": 10,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}
_SERVICE: Mapping[str, Any] = {
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
}
_CLAIM: Mapping[str, Any] = {"volumeMode": "Filesystem"}

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def with_defaults(kind: Kind, obj: Object) -> Object:
    """An object with the defaults of its kind; one of a kind without defaults as it is."""
    complete = _COMPLETE.get(kind)
    return complete(obj) if complete else obj


def _filled(value: Any, defaults: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    missing = {key: item for key, item in defaults.items() if value.get(key) in (None, "")}
    return {**value, **missing} if missing else value


def _pod(pod: Object) -> Object:
    spec = _filled(pod.get("spec"), _POD)
    if not isinstance(spec, dict):
        return pod
    spec = {**spec, "serviceAccount": spec["serviceAccountName"]}
    if not spec.get("priorityClassName"):
        spec.setdefault("priority", 0)
    for field in ("containers", "initContainers"):
        if isinstance(items := spec.get(field), list):
            spec[field] = [_container(item) for item in items]
    return {**pod, "spec": spec}


def _container(container: Any) -> Any:
    filled = _filled(container, _CONTAINER)
    if not isinstance(filled, dict):
        return filled
    filled = {**filled, "imagePullPolicy": filled.get("imagePullPolicy") or _pull(filled)}
    for field in _PROBES:
        if filled.get(field):
            filled[field] = _filled(filled[field], _PROBE)
    if isinstance(ports := filled.get("ports"), list):
        filled["ports"] = [_filled(port, {"protocol": "TCP"}) for port in ports]
    return filled


def _pull(container: Object) -> str:
    image = str(container.get("image") or "")
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent"


def _service(service: Object) -> Object:
    """A Service without a cluster address: its name stands for the pods themselves.

    Nothing on this machine balances between pods, so that every Service is a headless one.
    """
    spec = _filled(service.get("spec") or {}, _SERVICE)
    if not isinstance(spec, dict):
        return service
    if spec["type"] != "ExternalName":
        spec = {**spec, "clusterIP": "None", "clusterIPs": ["None"]}
        spec = _filled(spec, {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})
    if isinstance(ports := spec.get("ports"), list):
        spec = {**spec, "ports": [_port(port) for port in ports]}
    return {**service, "spec": spec}


def _port(port: Any) -> Any:
    if not isinstance(port, dict):
        return port
    return _filled(port, {"protocol": "TCP", "targetPort": port.get("port")})


def _claim(claim: Object) -> Object:
    return {**claim, "spec": _filled(claim.get("spec"), _CLAIM)}


def _secret(secret: Object) -> Object:
    """A Secret whose plain texts are encoded among the others: ``stringData`` is never read back.

    Texts that are none are left for the checks to find.
    """
    filled: Object = _filled(secret, {"type": "Opaque"})
    plain, data = filled.get("stringData"), filled.get("data") or {}
    if plain is None or not isinstance(plain, dict) or not isinstance(data, dict):
        return filled
    if not all(isinstance(text, str | None) for text in plain.values()):
        return filled
    encoded = {key: base64.b64encode((text or "").encode()).decode() for key, text in plain.items()}
    rest = {key: value for key, value in filled.items() if key != "stringData"}
    return {**rest, "data": {**data, **encoded}} if encoded else rest


def _namespace(namespace: Object) -> Object:
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        return namespace
    labels = {**labels, "kubernetes.io/metadata.name": metadata.get("name", "")}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


_COMPLETE: Mapping[Kind, Callable[[Object], Object]] = {
    POD: _pod,
    SERVICE: _service,
    PERSISTENT_VOLUME_CLAIM: _claim,
    SECRET: _secret,
    NAMESPACE: _namespace,
}
