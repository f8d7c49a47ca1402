"""The downward API: what a pod may learn about itself, for variables and for files.

Source: Kubernetes documentation, "Downward API" (available fields) and "Expose Pod Information to
Containers Through Files".
"""

import math
import re
from collections.abc import Callable, Mapping

from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.types import Object, all_containers
from vcjob.local.volumes.objects import MissingReference

_SUBSCRIPT = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>[^']+)'\]")


def _metadata(field: str) -> Callable[[Object], str]:
    return lambda pod: str((pod.get("metadata") or {}).get(field) or "")


def _joined(status: Object, field: str, entry: str) -> str:
    return ",".join(str(item.get(entry) or "") for item in status.get(field) or ())


def _status(pod: Object) -> Object:
    status: Object = pod.get("status") or {}
    return status


def _spec(pod: Object) -> Object:
    spec: Object = pod.get("spec") or {}
    return spec


_EVERYWHERE: Mapping[str, Callable[[Object], str]] = {
    "metadata.name": _metadata("name"),
    "metadata.namespace": _metadata("namespace"),
    "metadata.uid": _metadata("uid"),
}

_VARIABLES_ONLY: Mapping[str, Callable[[Object], str]] = {
    "spec.nodeName": lambda pod: str(_spec(pod).get("nodeName") or ""),
    "spec.serviceAccountName": lambda pod: str(_spec(pod).get("serviceAccountName") or "default"),
    "status.hostIP": lambda pod: str(_status(pod).get("hostIP") or ""),
    "status.hostIPs": lambda pod: _joined(_status(pod), "hostIPs", "ip"),
    "status.podIP": lambda pod: str(_status(pod).get("podIP") or ""),
    "status.podIPs": lambda pod: _joined(_status(pod), "podIPs", "ip"),
}


def variable_field(pod: Object, path: str) -> str:
    """The value of a fieldRef in ``env``; raises MissingReference for a path that is none.

    A label or annotation that the pod does not have is the empty text.
    """
    if found := _SUBSCRIPT.fullmatch(path):
        values = (pod.get("metadata") or {}).get(found["map"]) or {}
        return str(values.get(found["key"], ""))
    read = _EVERYWHERE.get(path) or _VARIABLES_ONLY.get(path)
    if read is None:
        raise MissingReference(_no_field(path, (*_EVERYWHERE, *_VARIABLES_ONLY)))
    return read(pod)


def file_field(pod: Object, path: str) -> str:
    """The content of a fieldRef in a volume, where all labels or annotations can be had too."""
    metadata: Object = pod.get("metadata") or {}
    if path in ("metadata.labels", "metadata.annotations"):
        values = metadata.get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{_escaped(str(values[key]))}"' for key in sorted(values))
    if path in _EVERYWHERE or _SUBSCRIPT.fullmatch(path):
        return variable_field(pod, path)
    raise MissingReference(
        _no_field(path, (*_EVERYWHERE, "metadata.labels", "metadata.annotations"))
    )


def resource_field(
    pod: Object, reference: Object, allocatable: Mapping[str, str], container: Object | None = None
) -> str:
    """The value of a resourceFieldRef: in units of its divisor, rounded up.

    A limit that is not set is what the node has (``allocatable``, quantities by resource name); a
    request that is not set is the limit where there is one, as the API server fills in, else 0.
    ``container`` is the one that asks, for references that name none. Raises MissingReference.
    """
    name = reference.get("containerName")
    if name:
        container = _container(pod, str(name))
    if container is None:
        raise MissingReference(
            f'resourceFieldRef names a container "{name or ""}" that the pod does not have'
        )
    section, _, resource = str(reference.get("resource") or "").partition(".")
    resources: Object = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    match section:
        case "limits" if resource:
            amount = limits.get(resource, allocatable.get(resource, "0"))
        case "requests" if resource:
            amount = requests.get(resource, limits.get(resource, "0"))
        case _:
            raise MissingReference(
                f"resourceFieldRef {reference.get('resource')!r} is neither limits.RESOURCE nor "
                "requests.RESOURCE"
            )
    try:
        divisor = parse_quantity(reference.get("divisor") or 1) or parse_quantity(1)
        return str(math.ceil(parse_quantity(amount) / divisor))
    except InvalidQuantity as error:
        raise MissingReference(f"resourceFieldRef {section}.{resource}: {error}") from error


def _container(pod: Object, name: str) -> Object | None:
    for container in all_containers(_spec(pod)):
        if container.get("name") == name:
            found: Object = container
            return found
    return None


def _no_field(path: str, known: tuple[str, ...]) -> str:
    return (
        f"fieldRef {path!r} is none that a pod can learn here; there are {', '.join(known)}, "
        "metadata.labels['KEY'] and metadata.annotations['KEY']"
    )


def _escaped(value: str) -> str:
    r"""As Go quotes a text (``%q``): one line, with ``\n``, ``\t``, ``\"`` and ``\\``."""
    table = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r",
             "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}  # fmt: skip
    return "".join(table.get(c) or (c if c.isprintable() else _unprintable(c)) for c in value)


def _unprintable(char: str) -> str:
    number = ord(char)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
