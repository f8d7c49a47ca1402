"""Bringing a Job's supporting objects to what its blueprint says: make, repair, prune.

Nobody else's object is ever touched: what has our name but not our owner is an obstacle that the
Job waits for (docs/compatibility.md row 2).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from vcjob.api.kinds import PERSISTENT_VOLUME_CLAIM, Kind, find_kind
from vcjob.api.names import MANAGED_BY, MANAGED_BY_VALUE
from vcjob.api.types import Object

Owned = Mapping[tuple[Kind, str], Object]
"""Objects that belong to one Job, by kind and name."""

# What an API server may add to, so that only what we say is compared.
_WHOLE = ("data", "binaryData")


class Create(msgspec.Struct, frozen=True):
    """Make an object."""

    kind: Kind
    object: Object


class Repair(msgspec.Struct, frozen=True):
    """Patch an object of the Job's own."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    patch: Object


class Remove(msgspec.Struct, frozen=True):
    """Delete an object of the Job's own."""

    kind: Kind
    namespace: str
    name: str
    uid: str


Step = Create | Repair | Remove


def kind_of(obj: Object) -> Kind:
    """The kind of an object that a plugin made; raises ValueError if vcjob does not know it."""
    kind = find_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
    if not kind:
        raise ValueError(f"objects of kind {obj.get('kind')} ({obj.get('apiVersion')})")
    return kind


def steps(wanted: Iterable[Object], owned: Owned) -> Iterator[Step]:
    """What is to be done so that the objects of a Job are as ``wanted``."""
    names: set[tuple[Kind, str]] = set()
    for obj in wanted:
        kind = kind_of(obj)
        name = obj["metadata"]["name"]
        names.add((kind, name))
        present = owned.get((kind, name))
        if present is None:
            yield Create(kind, obj)
        elif kind != PERSISTENT_VOLUME_CLAIM and not _is_leaving(present):
            patch = _repair(present, obj)
            if patch:
                yield _repair_of(kind, present, patch)
    for (kind, name), present in owned.items():
        ours = (present["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGED_BY_VALUE
        superfluous = (kind, name) not in names and kind != PERSISTENT_VOLUME_CLAIM
        if ours and superfluous and not _is_leaving(present):
            metadata = present["metadata"]
            yield Remove(kind, metadata.get("namespace", ""), name, metadata["uid"])


def group_steps(wanted: Object, present: Object | None) -> Iterator[Step]:
    """What is to be done so that the PodGroup's spec is as wanted.

    Keys are never removed, but for resources that the minimum no longer needs.
    """
    kind = kind_of(wanted)
    if present is None:
        yield Create(kind, wanted)
        return
    spec = {key: value for key, value in wanted["spec"].items() if key != "queue"}
    spec.setdefault("minMember", None)
    there = present.get("spec") or {}
    needed_before = dict.fromkeys(there.get("minResources") or ())
    spec["minResources"] = needed_before | spec.get("minResources", {})
    patch = subset_patch(there, spec)
    if patch and not _is_leaving(present):
        yield _repair_of(kind, present, {"spec": patch})


def _repair_of(kind: Kind, present: Object, patch: Object) -> Repair:
    metadata = present["metadata"]
    return Repair(kind, metadata.get("namespace", ""), metadata["name"], metadata["uid"], patch)


def _is_leaving(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _repair(present: Object, wanted: Object) -> Object:
    """The merge patch that brings an object back to what we say about it."""
    patch: Object = {}
    metadata = {
        field: wanted["metadata"][field]
        for field in ("labels", "annotations")
        if wanted["metadata"].get(field)
    }
    inner = subset_patch(present["metadata"], metadata)
    if inner:
        patch["metadata"] = inner
    for key, value in wanted.items():
        if key in ("apiVersion", "kind", "metadata", "status", "stringData"):
            continue
        there = present.get(key)
        part = subset_patch({key: there} if there is not None else {}, {key: value})
        if key in _WHOLE and isinstance(there, dict):
            extra = dict.fromkeys(there.keys() - value.keys())
            if extra:
                part = {key: {**(part or {}).get(key, {}), **extra}}
        if part:
            patch.update(part)
    return patch


def subset_patch(present: Object, wanted: Object) -> Object:
    """The merge patch for those parts of ``wanted`` that ``present`` does not have."""
    patch: Object = {}
    for key, value in wanted.items():
        there = present.get(key)
        if value is None:
            if there is not None:
                patch[key] = None
        elif isinstance(value, dict) and isinstance(there, dict):
            inner = subset_patch(there, value)
            if inner:
                patch[key] = inner
        elif not _covers(there, value):
            patch[key] = value
    return patch


def _covers(present: Any, wanted: Any) -> bool:
    """Whether ``present`` says what ``wanted`` says.

    An API server may have added defaults, and left out what is empty.
    """
    if present is None and not wanted:
        return True
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(
            _covers(present.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(present, list)
            and len(present) == len(wanted)
            and all(map(_covers, present, wanted))
        )
    return bool(present == wanted)
