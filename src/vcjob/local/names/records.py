"""From Services and Pods to names: which records the name server answers with.

Pure and incremental: each change of an object costs what that object's own records cost, however
many others there are. Source: Kubernetes DNS-Based Service Discovery, specification 1.1.0, with
one difference: there is no virtual address on this machine, so a Service with a cluster IP answers
with its pods' addresses like a headless one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from vcjob.api.types import Object
from vcjob.local.names import CLUSTER_DOMAIN

ENDED = ("Succeeded", "Failed")
"""Phases of pods that have no address any more."""

Name = tuple[str, str]
"""Namespace and name."""


class RecordKind(StrEnum):
    """The types of DNS record there are."""

    A = "A"
    SRV = "SRV"
    PTR = "PTR"


class Record(msgspec.Struct, frozen=True):
    """One record. ``value`` is an address (A), a name (PTR) or ``port name`` (SRV).

    Names are in lower case, without a final dot.
    """

    name: str
    kind: RecordKind
    value: str


class Update(msgspec.Struct, frozen=True):
    """What changed: first ``removed`` go, then ``added`` come. ``services`` are names that exist
    even without an address (their absence of records is no absence of the name)."""

    added: tuple[Record, ...] = ()
    removed: tuple[Record, ...] = ()
    services_added: tuple[str, ...] = ()
    services_removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.services_added or self.services_removed)


class _Service(msgspec.Struct, frozen=True):
    selector: Mapping[str, str]
    publish_not_ready: bool
    ports: tuple[tuple[str, str, str | int], ...]  # name, protocol, target

    @classmethod
    def of(cls, service: Object) -> "_Service":
        spec = service.get("spec") or {}
        return cls(
            selector=spec.get("selector") or {},
            publish_not_ready=bool(spec.get("publishNotReadyAddresses")),
            ports=tuple(
                (port["name"], port.get("protocol", "TCP").lower(), target_of(port))
                for port in spec.get("ports") or ()
                if port.get("name")
            ),
        )


class _Pod(msgspec.Struct, frozen=True):
    labels: Mapping[str, str]
    address: str
    ready: bool
    hostname: str
    subdomain: str
    ports: Mapping[str, int]

    @classmethod
    def of(cls, pod: Object) -> "_Pod":
        spec, status = pod["spec"], pod.get("status") or {}
        there = not pod["metadata"].get("deletionTimestamp") and status.get("phase") not in ENDED
        conditions = status.get("conditions") or ()
        return cls(
            labels=pod["metadata"].get("labels") or {},
            address=status.get("podIP", "") if there else "",
            ready=any(c["type"] == "Ready" and c["status"] == "True" for c in conditions),
            hostname=spec.get("hostname") or "",
            subdomain=spec.get("subdomain") or "",
            ports={
                port["name"]: port["containerPort"]
                for container in spec.get("containers") or ()
                for port in container.get("ports") or ()
                if port.get("name")
            },
        )


class Zone:
    """All records of the pods' world. Tell it objects, then take what changed."""

    def __init__(self) -> None:
        self._services: dict[Name, _Service] = {}
        self._pods: dict[Name, _Pod] = {}
        # By one pair of a selector: which Services may select a pod; by one of a pod's labels:
        # which pods a Service may select.
        self._selecting: dict[tuple[str, str, str], set[str]] = {}
        self._labelled: dict[tuple[str, str, str], set[str]] = {}
        self._records: Counter[Record] = Counter()
        self._changed: dict[Record, int] = {}
        self._services_changed: dict[str, bool] = {}

    def set_service(self, service: Object) -> None:
        """A Service exists, as given."""
        name = _name_of(service)
        new = _Service.of(service)
        if self._services.get(name) == new:
            return
        self.remove_service(*name)
        self._services[name] = new
        self._services_changed[service_name(*name)] = True
        if not new.selector:
            return
        self._selecting.setdefault(_lead(name[0], new.selector), set()).add(name[1])
        for pod in self._labelled.get(_lead(name[0], new.selector), ()):
            self._count(name, new, self._pods[name[0], pod], 1)

    def remove_service(self, namespace: str, name: str) -> None:
        """A Service is gone."""
        old = self._services.pop((namespace, name), None)
        if old is None:
            return
        self._services_changed[service_name(namespace, name)] = False
        if not old.selector:
            return
        lead = _lead(namespace, old.selector)
        self._selecting[lead].discard(name)
        for pod in self._labelled.get(lead, ()):
            self._count((namespace, name), old, self._pods[namespace, pod], -1)

    def set_pod(self, pod: Object) -> None:
        """A pod exists, as given."""
        name = _name_of(pod)
        new = _Pod.of(pod)
        if self._pods.get(name) == new:
            return
        self.remove_pod(*name)
        self._pods[name] = new
        for lead in _leads(name[0], new.labels):
            self._labelled.setdefault(lead, set()).add(name[1])
        self._count_pod(name[0], new, 1)

    def remove_pod(self, namespace: str, name: str) -> None:
        """A pod is gone."""
        old = self._pods.pop((namespace, name), None)
        if old is None:
            return
        for lead in _leads(namespace, old.labels):
            self._labelled[lead].discard(name)
            if not self._labelled[lead]:
                del self._labelled[lead]
        self._count_pod(namespace, old, -1)

    def take_update(self) -> Update:
        """What changed since the last call."""
        update = Update(
            added=tuple(record for record, change in self._changed.items() if change > 0),
            removed=tuple(record for record, change in self._changed.items() if change < 0),
            services_added=tuple(n for n, there in self._services_changed.items() if there),
            services_removed=tuple(n for n, there in self._services_changed.items() if not there),
        )
        self._changed.clear()
        self._services_changed.clear()
        return update

    def _count_pod(self, namespace: str, pod: _Pod, change: int) -> None:
        for lead in _leads(namespace, pod.labels):
            for service in self._selecting.get(lead, ()):
                found = self._services[namespace, service]
                self._count((namespace, service), found, pod, change)

    def _count(self, name: Name, service: _Service, pod: _Pod, change: int) -> None:
        """Count the records of one pod in one Service; a record is there while its count is not 0.

        (Two pods may share a host name, and two Services a pod.)
        """
        if not pod.address or not (pod.ready or service.publish_not_ready):
            return
        if any(pod.labels.get(key) != value for key, value in service.selector.items()):
            return
        for record in _records(name, service, pod):
            before = self._records[record]
            self._records[record] += change
            if (before == 0) != (before + change == 0):
                total = self._changed.get(record, 0) + change
                if total:
                    self._changed[record] = 1 if total > 0 else -1
                else:
                    del self._changed[record]
            if self._records[record] == 0:
                del self._records[record]


def service_name(namespace: str, service: str) -> str:
    """The full name of a Service: ``<service>.<namespace>.svc.cluster.local``."""
    return f"{service}.{namespace}.svc.{CLUSTER_DOMAIN}".lower()


def _records(name: Name, service: _Service, pod: _Pod) -> Iterator[Record]:
    whole = service_name(*name)
    named = bool(pod.hostname) and pod.subdomain == name[1]
    own = f"{pod.hostname if named else pod.address.replace('.', '-')}.{whole}".lower()
    yield Record(whole, RecordKind.A, pod.address)
    yield Record(own, RecordKind.A, pod.address)
    if named:
        reverse = ".".join(reversed(pod.address.split(".")))
        yield Record(f"{reverse}.in-addr.arpa", RecordKind.PTR, own)
    for port, protocol, target in service.ports:
        number = target if isinstance(target, int) else pod.ports.get(target)
        if number is not None:
            yield Record(f"_{port}._{protocol}.{whole}".lower(), RecordKind.SRV, f"{number} {own}")


def target_of(port: Object) -> str | int:
    """Number or name of the pods' port that a port of a Service leads to."""
    target = port.get("targetPort")
    found: str | int = port["port"] if target in (None, 0, "") else target
    return found


def _name_of(obj: Object) -> Name:
    metadata = obj["metadata"]
    return metadata["namespace"], metadata["name"]


def _lead(namespace: str, selector: Mapping[str, str]) -> tuple[str, str, str]:
    """One pair of a selector, by which it is found; the same one each time."""
    return (namespace, *min(selector.items()))


def _leads(namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for key, value in labels.items():
        yield namespace, key, value
