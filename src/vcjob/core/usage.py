"""What a pod counts for in a quota: the resources of a PodGroup's minimum.

Source: lifecycle.md section 11; Kubernetes documentation, "Resource Quotas", "Init Containers"
(resource sharing within containers), "Sidecar Containers", "Pod Overhead".
"""

from collections.abc import Iterable, Mapping

from vcjob.api.quantity import Quantity
from vcjob.api.types import Object

Amounts = dict[str, Quantity]

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
_ONE = Quantity.of(1)


def pod_usage(spec: Object) -> Amounts:
    """What one pod of this spec adds to a quota's use; raises InvalidQuantity."""
    requests = _pod_amounts(spec, "requests")
    limits = _pod_amounts(spec, "limits")
    usage = {"count/pods": _ONE, "pods": _ONE}
    for name, amount in requests.items():
        if name in _PLAIN or name.startswith(_HUGE_PAGES) or _is_extended(name):
            usage[name] = usage[f"requests.{name}"] = amount
    usage.update({f"limits.{name}": limits[name] for name in _PLAIN if name in limits})
    return usage


def add(total: Amounts, amounts: Mapping[str, Quantity], count: int = 1) -> None:
    """Add ``count`` times ``amounts`` to ``total``."""
    for name, amount in amounts.items():
        total[name] = total.get(name, Quantity()) + amount * count


def _pod_amounts(spec: Object, kind: str) -> Amounts:
    """Requests or limits of a whole pod: of its containers, or of one init container if more."""
    total = _sum(spec.get("containers") or (), kind)
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container.get("resources"), kind)
        if container.get("restartPolicy") == "Always":
            add(total, amounts)
            add(sidecars, amounts)
            amounts = dict(sidecars)
        else:
            add(amounts, sidecars)
        _raise_to(most, amounts)
    _raise_to(total, most)
    for name, amount in _amounts(spec.get("resources"), kind).items():
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
            total[name] = amount
    overhead = _read(spec.get("overhead"))
    add(total, {name: overhead[name] for name in overhead if kind == "requests" or name in total})
    return total


def _sum(containers: Iterable[Object], kind: str) -> Amounts:
    total: Amounts = {}
    for container in containers:
        add(total, _amounts(container.get("resources"), kind))
    return total


def _amounts(resources: Object | None, kind: str) -> Amounts:
    return _read((resources or {}).get(kind))


def _read(amounts: Mapping[str, str | int | float] | None) -> Amounts:
    return {name: Quantity.of(amount) for name, amount in (amounts or {}).items()}


def _raise_to(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if name not in total or total[name].value < amount.value:
            total[name] = amount


def _is_extended(name: str) -> bool:
    """Whether a resource is none of Kubernetes' own: ``example.com/gpu``."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
