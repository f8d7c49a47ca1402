"""The files of configMap, secret, downwardAPI and projected volumes: pure.

Source: Kubernetes documentation, "Volumes" and "Projected Volumes".
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from vcjob.api.kinds import CONFIG_MAP, SECRET, Kind
from vcjob.api.types import Object
from vcjob.local.sandbox.paths import UnsafePath, checked_key, checked_relative
from vcjob.local.volumes.downward import file_field, resource_field
from vcjob.local.volumes.objects import Find, MissingReference, object_data

KINDS = ("configMap", "secret", "downwardAPI", "projected")
"""The volume types whose files are made from objects."""

_DEFAULT_MODE = 0o644


class File(msgspec.Struct, frozen=True):
    """One file of a volume: its content, its permission bits, whether it comes from a Secret."""

    data: bytes
    mode: int
    secret: bool = False


Files = Mapping[str, File]
"""Files by relative path, checked: no ``..`` anywhere, and none starts with ``..``."""


def volume_files(volume: Object, pod: Object, find: Find, allocatable: Mapping[str, str]) -> Files:
    """The files of a volume of one of ``KINDS``; a later source replaces an earlier one's file.

    ``allocatable`` (quantities by resource name) stands for limits that are not set. Raises
    MissingReference, UnsafePath.
    """
    where = f'volume "{volume.get("name")}"'
    files: dict[str, File] = {}
    try:
        for field, source, mode in _sources(volume):
            for path, data, own_mode in _entries(field, source, pod, find, allocatable):
                file = File(data, mode if own_mode is None else own_mode, field == "secret")
                files[_checked_path(path)] = file
    except (MissingReference, UnsafePath) as error:
        raise type(error)(f"{where}: {error}") from error
    return files


def references(volume: Object) -> frozenset[tuple[Kind, str]]:
    """The ConfigMaps and Secrets whose changes change the volume's files."""
    found = set()
    for field, source, _ in _sources(volume):
        if field == "configMap":
            found.add((CONFIG_MAP, str(source.get("name") or "")))
        elif field == "secret":
            found.add((SECRET, _secret_name(source)))
    return frozenset(found)


def _sources(volume: Object) -> Iterator[tuple[str, Object, int]]:
    """(type, source, default mode) of each part of a volume."""
    for field in KINDS:
        source = volume.get(field)
        if source is None:
            continue
        given = source.get("defaultMode")
        mode = _DEFAULT_MODE if given is None else int(given)
        if field != "projected":
            yield field, source, mode
            continue
        for part in source.get("sources") or ():
            for name, inner in part.items():
                if inner is not None:
                    yield name, inner, mode


def _entries(
    field: str, source: Object, pod: Object, find: Find, allocatable: Mapping[str, str]
) -> Iterator[tuple[str, bytes, int | None]]:
    match field:
        case "configMap":
            yield from _keys(CONFIG_MAP, str(source.get("name") or ""), source, find)
        case "secret":
            yield from _keys(SECRET, _secret_name(source), source, find)
        case "downwardAPI":
            for item in source.get("items") or ():
                if reference := item.get("fieldRef"):
                    text = file_field(pod, str(reference.get("fieldPath") or ""))
                else:
                    text = resource_field(pod, item.get("resourceFieldRef") or {}, allocatable)
                yield str(item.get("path") or ""), text.encode(), item.get("mode")
        case "clusterTrustBundle" if source.get("optional"):
            return
        case _:
            raise MissingReference(f"there is no server here that could issue a {field}")


def _keys(
    kind: Kind, name: str, source: Object, find: Find
) -> Iterator[tuple[str, bytes, int | None]]:
    optional = bool(source.get("optional"))
    obj = find(kind, name)
    if obj is None:
        if optional:
            return
        raise MissingReference(f'{kind} "{name}" does not exist')
    data = object_data(kind, obj)
    items: list[Any] = source.get("items") or []
    if not items:
        for key, value in data.items():
            yield checked_key(key), value, None
        return
    for item in items:
        key = str(item.get("key") or "")
        if key in data:
            yield str(item.get("path") or ""), data[key], item.get("mode")
        elif not optional:
            raise MissingReference(f'{kind} "{name}" has no key "{key}"')


def _secret_name(source: Object) -> str:
    """Secrets are named ``secretName`` as volumes, ``name`` in projected ones."""
    return str(source.get("secretName") or source.get("name") or "")


def _checked_path(path: str) -> str:
    relative = checked_relative(path)
    if not relative or relative.startswith(".."):
        raise UnsafePath(f"{path!r} is no path for a file: it is empty or starts with '..'")
    if any(len(part.encode()) > 255 for part in relative.split("/")):
        raise UnsafePath(f"{path[:40]!r}… has a part longer than 255 bytes")
    return relative
