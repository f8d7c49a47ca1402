"""What a pod asks of its container runtime that the sandbox does not grant, to be told once."""

from collections.abc import Iterator
from typing import Any

from vcjob.api.types import Object, all_containers
from vcjob.local.node.identity import IdMaps

_HOST_NAMESPACES = {
    "hostNetwork": "a network of its own is what every pod gets",
    "hostPID": "it sees its own processes only",
    "hostIPC": "it shares no memory segments with this machine",
}


def not_granted(pod_spec: Object, maps: IdMaps) -> tuple[str, ...]:
    """One sentence for each thing asked for and not granted, in the order of the fields."""
    return tuple(dict.fromkeys(_not_granted(pod_spec, maps)))


def _not_granted(spec: Object, maps: IdMaps) -> Iterator[str]:
    for field, instead in _HOST_NAMESPACES.items():
        if spec.get(field):
            yield f"{field} is not granted: {instead}"
    yield from _identity(spec.get("securityContext") or {}, maps)
    for container in all_containers(spec):
        context: dict[str, Any] = container.get("securityContext") or {}
        if context.get("privileged"):
            yield "privileged is not granted: containers have a runtime's default capabilities"
        added = (context.get("capabilities") or {}).get("add") or ()
        if added:
            yield f"added capabilities are not granted: {', '.join(map(str, added))}"
        yield from _identity(context, maps)


def _identity(context: Object, maps: IdMaps) -> Iterator[str]:
    """Users and groups that the id map has no number for."""
    asked = (
        *((field, maps.has_user, context.get(field)) for field in ("runAsUser",)),
        *((field, maps.has_group, context.get(field)) for field in ("runAsGroup", "fsGroup")),
    )
    for field, has, number in asked:
        if isinstance(number, int) and not has(number):
            yield (
                f"{field} {number} is not granted: only number 0 (you) exists inside; install "
                "newuidmap and give your user a range in /etc/subuid and /etc/subgid"
            )
