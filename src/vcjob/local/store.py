"""The objects of this machine's jobs: what a Kubernetes API server and its garbage collector do.

Objects are plain JSON, shared by the store, its watches and the caches that they feed: nobody may
change one. A change replaces the object and shares what stayed the same, so ten thousand pods of a
template cost little more than their differences. Source of the rules: Kubernetes documentation,
"API Concepts", "Garbage Collection" and "Pod Lifecycle" (termination of pods).
"""

import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from vcjob.api.kinds import COMMAND, CONFIG_MAP, EVENT, POD, POD_GROUP, PRIORITY_CLASS, SECRET, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    Conflict,
    EventType,
    Invalid,
    NotFound,
    ObjectList,
    WatchEvent,
)
from vcjob.core.times import timestamp
from vcjob.local.merge_patch import merge_patch
from vcjob.local.watches import Change, History, matches

Admission = Callable[[Kind, Object, Object | None], Object]
"""Looks at an object before it is stored (and at its predecessor), and returns it, completed.

Raises Invalid or Forbidden to refuse it."""

_WITHOUT_STATUS_SUBRESOURCE = (COMMAND, CONFIG_MAP, EVENT, POD_GROUP, PRIORITY_CLASS, SECRET)
_DEFAULT_GRACE_SECONDS = 30
_HISTORY_LENGTH = 50_000
_GENERATED_SUFFIX_LENGTH = 5
_FOREGROUND = "foregroundDeletion"

_Key = tuple[str, str]
_Place = tuple[Kind, _Key]


class Store:
    """A ``Cluster`` in this process.

    Args:
        clock: the time in seconds since 1970.
        new_uid: makes object UIDs.
        admission: asked before an object is stored.
        history: how many changes of each kind a watch can go back.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
        admission: Admission | None = None,
        history: int = _HISTORY_LENGTH,
    ) -> None:
        self._clock = clock
        self._new_uid = new_uid
        self._admission = admission
        self._history_length = history
        self._version = 0
        self._objects: dict[Kind, dict[_Key, Object]] = {}
        self._histories: dict[Kind, History] = {}
        self._uids: dict[str, _Place] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    @property
    def version(self) -> int:
        """The resource version of the latest change."""
        return self._version

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Read one object; raises NotFound."""
        return self._find(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        """Read all objects of a kind, of one namespace or of all, whose labels equal ``labels``."""
        objects = self._objects.get(kind, {}).values()
        items = [obj for obj in objects if matches(obj, namespace, labels)]
        return ObjectList(items, str(self._version))

    def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Follow changes after resource version ``since``, without end; raises Gone."""
        return self._history(kind).follow(int(since), namespace, labels)

    async def create(self, kind: Kind, obj: Object) -> Object:
        """Create an object and return it as stored; raises AlreadyExists, Invalid, Forbidden."""
        metadata = dict(obj.get("metadata") or {})
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = uuid.UUID(self._new_uid()).hex[-_GENERATED_SUFFIX_LENGTH:]
            metadata["name"] = metadata["generateName"] + suffix
        if not metadata.get("name"):
            raise Invalid(f"{kind}: metadata.name is missing")
        created = {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        if self._admission:
            created = dict(self._admission(kind, created, None))
            metadata = dict(created["metadata"])
        key = (metadata.get("namespace", ""), metadata["name"])
        if key in self._objects.get(kind, {}):
            raise AlreadyExists(f"{kind} {_shown(key)} already exists")
        metadata["uid"] = self._new_uid()
        metadata["creationTimestamp"] = timestamp(self._clock())
        if "spec" in created:
            metadata["generation"] = 1
        if kind not in _WITHOUT_STATUS_SUBRESOURCE:
            created.pop("status", None)
        if kind == POD:
            created["status"] = {"phase": "Pending"}
        created["metadata"] = metadata
        stored = self._put(kind, key, created, None)
        self._uids[metadata["uid"]] = (kind, key)
        owners = _owner_uids(stored)
        for owner in owners:
            self._dependents.setdefault(owner, {})[metadata["uid"]] = None
        if owners and not any(owner in self._uids for owner in owners):
            self._delete(kind, key, None, "Background")
        return stored

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Object,
        *,
        subresource: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Object:
        """Apply a JSON merge patch; raises NotFound, Conflict, Invalid."""
        old = self._find(kind, namespace, name)
        _check_uid(kind, old, uid)
        if resource_version and resource_version != old["metadata"]["resourceVersion"]:
            raise Conflict(f"{kind} {namespace}/{name} has changed in the meantime")
        if subresource == "status":
            patch = {"status": patch["status"]} if "status" in patch else {}
        elif subresource:
            raise Invalid(f"{kind} has no subresource {subresource}")
        elif kind not in _WITHOUT_STATUS_SUBRESOURCE:
            patch = {field: value for field, value in patch.items() if field != "status"}
        new: Object = merge_patch(old, patch)
        if new is old:
            return old
        if self._admission and not subresource:
            new = self._admission(kind, new, old)
        metadata = {**new["metadata"], **_unchangeable(old["metadata"])}
        if new.get("spec") != old.get("spec"):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        key = (old["metadata"].get("namespace", ""), name)
        stored = self._put(kind, key, {**new, "metadata": metadata}, old)
        self._owners_changed(old, stored)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and kind != POD:
            self._remove(kind, key)
        return stored

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Ask for deletion; with ``uid`` only of that very object. Raises NotFound, Conflict.

        A pod that is bound to a node stays, marked with ``deletionTimestamp``, until the node's
        agent deletes it with a grace period of 0.
        """
        obj = self._find(kind, namespace, name)
        _check_uid(kind, obj, uid)
        key = (obj["metadata"].get("namespace", ""), name)
        self._delete(kind, key, grace_period_seconds, propagation)

    def _delete(self, kind: Kind, key: _Key, grace: int | None, propagation: str) -> None:
        obj = self._objects[kind][key]
        metadata = obj["metadata"]
        if kind == POD:
            self._delete_pod(key, obj, grace)
        elif propagation == "Foreground" and self._blocking_dependents(metadata["uid"]):
            finalizers = [*metadata.get("finalizers", ()), _FOREGROUND]
            if _FOREGROUND not in metadata.get("finalizers", ()):
                self._mark_deleted(kind, key, obj, {"finalizers": finalizers})
            for dependent, dependent_key in self._blocking_dependents(metadata["uid"]):
                self._delete(dependent, dependent_key, None, "Background")
        elif metadata.get("finalizers"):
            self._mark_deleted(kind, key, obj, {})
        else:
            if propagation == "Orphan":
                self._orphan(metadata["uid"])
            self._remove(kind, key)

    def _delete_pod(self, key: _Key, pod: Object, grace: int | None) -> None:
        spec, metadata = pod.get("spec") or {}, pod["metadata"]
        if grace is None:
            grace = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
        ended = pod["status"].get("phase") in ("Succeeded", "Failed")
        if not spec.get("nodeName") or ended or grace <= 0:
            self._remove(POD, key)
            return
        given = metadata.get("deletionGracePeriodSeconds")
        if given is not None and given <= grace:
            return
        marks = {
            "deletionTimestamp": timestamp(self._clock() + grace),
            "deletionGracePeriodSeconds": grace,
        }
        self._put(POD, key, {**pod, "metadata": {**metadata, **marks}}, pod)

    def _mark_deleted(self, kind: Kind, key: _Key, obj: Object, more: Object) -> None:
        marks = {"deletionTimestamp": timestamp(self._clock()), **more}
        self._put(kind, key, {**obj, "metadata": {**obj["metadata"], **marks}}, obj)

    def _remove(self, kind: Kind, key: _Key) -> None:
        """Take an object away, then everything that belonged to it alone."""
        obj = self._objects[kind].pop(key)
        uid = obj["metadata"]["uid"]
        self._uids.pop(uid, None)
        version = self._next_version()
        last = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        self._history(kind).record(Change(version, EventType.DELETED, last, None))
        owners = _owner_uids(obj)
        for owner in owners:
            if owner in self._dependents:
                self._dependents[owner].pop(uid, None)
        for dependent in list(self._dependents.pop(uid, ())):
            place = self._uids.get(dependent)
            if place and not any(o in self._uids for o in _owner_uids(self._at(place))):
                self._delete(*place, None, "Background")
        for owner in owners:
            self._finish_foreground(owner)

    def _finish_foreground(self, owner: str) -> None:
        """Take away an object that waited for its dependents, once the last one is gone."""
        place = self._uids.get(owner)
        if not place:
            return
        obj = self._at(place)
        finalizers = obj["metadata"].get("finalizers", ())
        if _FOREGROUND not in finalizers or self._blocking_dependents(owner):
            return
        if list(finalizers) == [_FOREGROUND]:
            self._remove(*place)
        else:
            rest = [item for item in finalizers if item != _FOREGROUND]
            metadata = {**obj["metadata"], "finalizers": rest}
            self._put(*place, {**obj, "metadata": metadata}, obj)

    def _blocking_dependents(self, uid: str) -> tuple[_Place, ...]:
        places = [self._uids[dependent] for dependent in self._dependents.get(uid, ())]
        return tuple(
            place
            for place in places
            if any(
                owner.get("uid") == uid and owner.get("blockOwnerDeletion")
                for owner in self._at(place)["metadata"].get("ownerReferences", ())
            )
        )

    def _orphan(self, uid: str) -> None:
        for dependent in list(self._dependents.pop(uid, ())):
            kind, key = self._uids[dependent]
            obj = self._objects[kind][key]
            owners = [o for o in obj["metadata"]["ownerReferences"] if o.get("uid") != uid]
            metadata = {**obj["metadata"], "ownerReferences": owners}
            self._put(kind, key, {**obj, "metadata": metadata}, obj)

    def _owners_changed(self, old: Object, new: Object) -> None:
        before, after = set(_owner_uids(old)), set(_owner_uids(new))
        for owner in before - after:
            self._dependents.get(owner, {}).pop(new["metadata"]["uid"], None)
        for owner in after - before:
            self._dependents.setdefault(owner, {})[new["metadata"]["uid"]] = None

    def _put(self, kind: Kind, key: _Key, obj: Object, old: Object | None) -> Object:
        version = self._next_version()
        obj["metadata"]["resourceVersion"] = str(version)
        self._objects.setdefault(kind, {})[key] = obj
        if old is None:
            change = Change(version, EventType.ADDED, obj, None)
        else:
            same_labels = old["metadata"].get("labels") == obj["metadata"].get("labels")
            change = Change(version, EventType.MODIFIED, obj, None if same_labels else old)
        self._history(kind).record(change)
        return obj

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _history(self, kind: Kind) -> History:
        if kind not in self._histories:
            self._histories[kind] = History(self._history_length)
        return self._histories[kind]

    def _find(self, kind: Kind, namespace: str, name: str) -> Object:
        key = (namespace if kind.namespaced else "", name)
        try:
            return self._objects[kind][key]
        except KeyError as error:
            raise NotFound(f"there is no {kind} {_shown(key)}") from error

    def _at(self, place: _Place) -> Object:
        kind, key = place
        return self._objects[kind][key]


def _owner_uids(obj: Object) -> list[str]:
    return [owner.get("uid", "") for owner in obj["metadata"].get("ownerReferences") or ()]


def _unchangeable(metadata: Object) -> dict[str, Any]:
    """What no patch changes."""
    fixed = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp")
    return {field: metadata[field] for field in fixed if field in metadata}


def _check_uid(kind: Kind, obj: Object, uid: str) -> None:
    if uid and uid != obj["metadata"]["uid"]:
        raise Conflict(f"{kind} {obj['metadata']['name']} is another object of the same name")


def _shown(key: _Key) -> str:
    namespace, name = key
    return f"{namespace}/{name}" if namespace else name
