"""EndpointSlices of an engine that serves: which pods are behind a Service, for other programs.

Nothing of vcjob reads them; kubectl and operators do. Source: Kubernetes documentation,
"EndpointSlices", and the API reference of ``discovery.k8s.io/v1``.
"""

import asyncio
import base64
import hashlib
from collections.abc import Callable, Iterable

from vcjob.api.kinds import ENDPOINT_SLICE, POD, SERVICE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    Cluster,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
)
from vcjob.local.following import Key, follow, key_of
from vcjob.local.names.records import ENDED, target_of

SERVICE_LABEL = "kubernetes.io/service-name"
MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.vcjob"

_MOST_ENDPOINTS = 1000
_TURN_SECONDS = 0.5
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


class EndpointSlices:
    """Keeps the EndpointSlices of all Services, until cancelled.

    Args:
        cluster: where the objects live.
        on_problem: is told of a slice that the cluster refuses.
        turn_seconds: how long changes are gathered before they are written.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_problem: Callable[[str], None],
        turn_seconds: float = _TURN_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._on_problem = on_problem
        self._turn_seconds = turn_seconds
        self._services: dict[Key, Object] = {}
        self._pods: dict[str, dict[str, Object]] = {}
        # By one pair of a selector: the Services that may select a pod with this label.
        self._selecting: dict[tuple[str, str, str], set[Key]] = {}
        self._slices: dict[Key, set[str]] = {}
        self._unlisted = {SERVICE, POD, ENDPOINT_SLICE}
        self._all_listed = asyncio.Event()
        self._changed: set[Key] = set()
        self._any_changed = asyncio.Event()

    async def run(self) -> None:
        """Follow Services, pods and slices, and write what is to change."""
        async with asyncio.TaskGroup() as tasks:
            for kind, take in (
                (SERVICE, self._take_service),
                (POD, self._take_pod),
                (ENDPOINT_SLICE, self._take_slice),
            ):
                listed = self._when_listed(kind)
                tasks.create_task(follow(self._cluster, kind, take, listed))
            tasks.create_task(self._write())

    def _when_listed(self, kind: Kind) -> Callable[[], None]:
        def listed() -> None:
            self._unlisted.discard(kind)
            if not self._unlisted:
                self._all_listed.set()

        return listed

    def _take_service(self, service: Object, gone: bool) -> None:
        key = key_of(service)
        old = self._services.pop(key, None)
        if old and (lead := _lead(old)):
            self._selecting[lead].discard(key)
            if not self._selecting[lead]:
                del self._selecting[lead]
        if gone:
            return  # its slices are garbage, collected as such
        self._services[key] = service
        if lead := _lead(service):
            self._selecting.setdefault(lead, set()).add(key)
        self._look_at(key)

    def _take_pod(self, pod: Object, gone: bool) -> None:
        namespace, name = key_of(pod)
        pods = self._pods.setdefault(namespace, {})
        old = pods.pop(name, None)
        if not gone:
            pods[name] = pod
        elif not pods:
            del self._pods[namespace]
        for state in (old, pod):
            for label in _labels(state or pod).items():
                for key in self._selecting.get((namespace, *label), ()):
                    self._look_at(key)

    def _take_slice(self, found: Object, gone: bool) -> None:
        """A slice that somebody deleted or changed is put right."""
        namespace, name = key_of(found)
        owners = found["metadata"].get("ownerReferences") or ()
        services = {owner["name"] for owner in owners if owner.get("kind") == SERVICE.kind}
        if _labels(found).get(MANAGER_LABEL) == MANAGER:
            services.add(_labels(found).get(SERVICE_LABEL, ""))
        for service in services:
            names = self._slices.setdefault((namespace, service), set())
            names.discard(name)
            if not gone and _labels(found).get(MANAGER_LABEL) == MANAGER:
                names.add(name)
            if not names:
                del self._slices[namespace, service]
            self._look_at((namespace, service))

    def _look_at(self, service: Key) -> None:
        self._changed.add(service)
        self._any_changed.set()

    async def _write(self) -> None:
        await self._all_listed.wait()  # before, pods would seem to be gone
        while True:
            await self._any_changed.wait()
            await asyncio.sleep(self._turn_seconds)
            self._any_changed.clear()
            changed, self._changed = self._changed, set()
            for key in changed:
                await self._settle(key)
                await asyncio.sleep(0)

    async def _settle(self, key: Key) -> None:
        service = self._services.get(key)
        if service is None or service["metadata"].get("deletionTimestamp"):
            return
        namespace = key[0]
        wanted = slices_of(service, self._pods.get(namespace, {}).values())
        try:
            for one in wanted:
                await self._put(namespace, one)
            kept = {one["metadata"]["name"] for one in wanted}
            for name in self._slices.get(key, set()) - kept:
                await self._cluster.delete(ENDPOINT_SLICE, namespace, name)
        except (AlreadyExists, Conflict, NotFound):
            self._look_at(key)  # somebody was quicker
        except Forbidden:
            return  # the namespace is being deleted, and the Service with it
        except Invalid as error:
            self._on_problem(f"no EndpointSlice for Service {namespace}/{key[1]}: {error}")

    async def _put(self, namespace: str, wanted: Object) -> None:
        name = wanted["metadata"]["name"]
        try:
            found = await self._cluster.get(ENDPOINT_SLICE, namespace, name)
        except NotFound:
            await self._cluster.create(ENDPOINT_SLICE, wanted)
            return
        if _is_as(found, wanted):
            return
        version = found["metadata"]["resourceVersion"]
        await self._cluster.patch(ENDPOINT_SLICE, namespace, name, wanted, resource_version=version)


def _selects(selector: Object, pod: Object) -> bool:
    return selector.items() <= _labels(pod).items()


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


def _is_as(found: Object, wanted: Object) -> bool:
    return (
        _labels(wanted).items() <= _labels(found).items()
        and found["metadata"].get("ownerReferences") == wanted["metadata"]["ownerReferences"]
        and all(
            found.get(field) == wanted[field] for field in ("addressType", "endpoints", "ports")
        )
    )


def _labels(obj: Object) -> Object:
    labels: Object = obj["metadata"].get("labels") or {}
    return labels


def _lead(service: Object) -> tuple[str, str, str] | None:
    """One pair of a Service's selector, by which it is found; None without a selector."""
    selector = (service.get("spec") or {}).get("selector")
    return (service["metadata"]["namespace"], *min(selector.items())) if selector else None
