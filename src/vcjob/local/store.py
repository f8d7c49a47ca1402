"""The objects of this machine's jobs: what a Kubernetes API server and its garbage collector do.

Objects are plain JSON, shared by the store, its watches and the caches that they feed: nobody may
change one. A change replaces the object and shares what stayed the same, so ten thousand pods of a
template cost little more than their differences. Source of the rules: Kubernetes documentation,
"API Concepts".
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vcjob.api.kinds import COMMAND, CONFIG_MAP, EVENT, POD, POD_GROUP, PRIORITY_CLASS, SECRET, Kind
from vcjob.api.types import Key, Object, key_of
from vcjob.controller.cluster import AlreadyExists, Invalid, NotFound, ObjectList
from vcjob.core.scheduling.priorities import with_priority
from vcjob.core.times import timestamp
from vcjob.local.deleting import changed_owners, collect, delete, released, remove
from vcjob.local.merge_patch import merge_patch
from vcjob.local.objects import Disk, Objects, owner_uids
from vcjob.local.sharing import reuse
from vcjob.local.updates import check_current, fresh_metadata, settled
from vcjob.local.watches import Follow, Wanted, everything, selected_by

Admission = Callable[[Kind, Object, Object | None], Object]
"""Looks at an object before it is stored (and at its predecessor), and returns it, completed.

Raises Invalid or Forbidden to refuse it."""

_WITHOUT_STATUS_SUBRESOURCE = (COMMAND, CONFIG_MAP, EVENT, POD_GROUP, PRIORITY_CLASS, SECRET)
_HISTORY_LENGTH = 50_000
_HISTORY_BYTES = 128 << 20
_GENERATED_SUFFIX_LENGTH = 5
_NAMES_TRIED = 8


class Store:
    """A ``Cluster`` in this process, and what an API server needs beyond that.

    Every change is a transaction: it is on the disk, where there is one, before it is seen.

    Args:
        clock: the time in seconds since 1970.
        new_uid: makes object UIDs.
        admission: asked before an object is stored.
        history: how many changes of each kind a watch can go back.
        history_bytes: how large the objects of these changes are together, as stored on disk.
        disk: keeps the objects; none: they end with this process.
        share: makes parts of what comes in one with what is there; see ``sharing.Sharing``.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
        admission: Admission | None = None,
        history: int = _HISTORY_LENGTH,
        history_bytes: int = _HISTORY_BYTES,
        disk: Disk | None = None,
        share: Callable[[Any], Any] | None = None,
    ) -> None:
        self._clock = clock
        self._new_uid = new_uid
        self._admission = admission
        self._share = share
        self._objects = Objects(history, history_bytes, disk)
        self._without_status = set(_WITHOUT_STATUS_SUBRESOURCE)

    @property
    def version(self) -> int:
        """The resource version of the latest change."""
        return self._objects.version

    def load(self, version: int, objects: Iterator[tuple[Kind, Key, Object]]) -> None:
        """Take in what a disk kept, as of ``version``, before anything else happens."""
        share = self._share
        if share:
            objects = ((kind, key, share(obj)) for kind, key, obj in objects)
        self._objects.load(version, objects)

    def declare(self, kind: Kind, *, status_subresource: bool) -> None:
        """Say whether the status of a custom kind is written apart (it is, if nobody says)."""
        if status_subresource:
            self._without_status.discard(kind)
        else:
            self._without_status.add(kind)

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Read one object; raises NotFound."""
        return self._find(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        """Read all objects of a kind, of one namespace or of all, whose labels equal ``labels``."""
        return await self.select(kind, None, selected_by(namespace, labels))

    async def select(self, kind: Kind, namespace: str | None, wanted: Wanted) -> ObjectList:
        """All objects of a kind, of one namespace or of all, that are wanted."""
        inside = _inside(namespace, wanted)
        items = list(self._objects.of(kind).values())
        if inside is not everything:
            items = [obj for obj in items if inside(obj)]
        return ObjectList(items, str(self.version))

    def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Follow:
        """Follow changes after resource version ``since``, without end; raises Gone."""
        return self.follow(kind, since, None, selected_by(namespace, labels))

    def follow(self, kind: Kind, since: str, namespace: str | None, wanted: Wanted) -> Follow:
        """Follow what is wanted, after version ``since``, without end; raises Gone.

        An object that comes to be wanted is ADDED, one that is no longer wanted is DELETED.
        """
        return self._objects.follow(kind, int(since), _inside(namespace, wanted))

    async def create(self, kind: Kind, obj: Object, *, dry_run: bool = False) -> Object:
        """Create an object and return it as stored.

        Raises AlreadyExists, Invalid, Forbidden, StorageFailed.
        """
        metadata = fresh_metadata(kind, obj.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._generated(kind, metadata)
        if not metadata.get("name"):
            raise Invalid(f"{kind}: metadata.name is missing")
        created = {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        if self._admission:
            created = dict(self._admission(kind, created, None))
            metadata = dict(created["metadata"])
        key = (metadata.get("namespace", ""), metadata["name"])
        if self._objects.find(kind, key) is not None:
            raise AlreadyExists(f"{kind} {_shown(key)} already exists")
        metadata["uid"] = self._new_uid()
        metadata["creationTimestamp"] = timestamp(self._clock())
        if "spec" in created:
            metadata["generation"] = 1
        if self._has_status(kind):
            created.pop("status", None)
        if kind == POD:
            classes = self._objects.of(PRIORITY_CLASS).values()
            created["spec"] = with_priority(created.get("spec") or {}, classes)
            created["status"] = self._status_of_new_pod(created["spec"])
        if self._share:
            created = {field: self._share(value) for field, value in created.items()}
            metadata = {field: self._share(value) for field, value in metadata.items()}
        created["metadata"] = metadata
        with self._objects.transaction(dry_run=dry_run):
            stored = self._objects.put(kind, key, created)
            if metadata.get("ownerReferences"):
                collect(self._objects, (kind, key), self._clock())
        return _at_version(stored, None) if dry_run else stored

    async def replace(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Put ``obj`` in the place of an object, and return what is stored.

        ``metadata.resourceVersion`` and ``metadata.uid`` must be the current ones where they are
        given, else Conflict. What clients cannot change stays. Raises NotFound, Invalid, Forbidden,
        StorageFailed.
        """
        metadata = obj.get("metadata") or {}
        return await self.modify(
            kind,
            namespace,
            name,
            lambda old: obj,
            subresource=subresource,
            uid=metadata.get("uid") or "",
            resource_version=metadata.get("resourceVersion") or "",
            dry_run=dry_run,
        )

    async def modify(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        *,
        subresource: str = "",
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Change an object by a function that makes a new one of it, and return the result.

        A change that changes nothing is none: the resource version stays. Raises NotFound,
        Conflict, Invalid, Forbidden, StorageFailed, and what ``change`` raises.
        """
        old = self._find(kind, namespace, name)
        check_current(kind, old, uid, resource_version)
        new = reuse(old, change(old))
        if new is not old and self._share:
            new = {field: self._share(value) for field, value in new.items()}
        return self._update(kind, old, new, subresource, dry_run)

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
        """Apply a JSON merge patch; raises as ``modify`` does."""
        old = self._find(kind, namespace, name)
        check_current(kind, old, uid, resource_version)
        return self._update(kind, old, merge_patch(old, patch), subresource, False)

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> Object:
        """Ask for deletion and return the object as it was left.

        With ``uid`` or ``resource_version`` only of that very object, else Conflict. A pod that is
        bound to a node stays, marked with ``deletionTimestamp``, until the node's agent deletes it
        with a grace period of 0; what has finalizers stays until they are taken off.
        ``propagation`` is as for ``deleting.delete``. Raises NotFound, StorageFailed.
        """
        obj = self._find(kind, namespace, name)
        check_current(kind, obj, uid, resource_version)
        place = (kind, key_of(obj))
        with self._objects.transaction(dry_run=dry_run):
            return delete(
                self._objects,
                place,
                self._clock(),
                grace=grace_period_seconds,
                propagation=propagation,
            )

    def _update(
        self, kind: Kind, old: Object, new: Object, subresource: str, dry_run: bool
    ) -> Object:
        if subresource not in ("", "status"):
            raise Invalid(f"{kind} has no subresource {subresource}")
        has_status = self._has_status(kind)
        wanted = settled(kind, old, new, subresource=subresource, has_status=has_status)
        if wanted is old:
            return old
        if self._admission and not subresource:
            admitted = reuse(wanted, self._admission(kind, wanted, old))
            wanted = settled(kind, old, admitted, subresource="", has_status=has_status)
            if wanted is old:
                return old
        place = (kind, key_of(old))
        with self._objects.transaction(dry_run=dry_run):
            changed = {**wanted, "metadata": dict(wanted["metadata"])}
            stored = self._objects.put(*place, changed)
            if released(stored, kind):
                remove(self._objects, place, self._clock())
            elif _owners(stored) is not _owners(old):
                changed_owners(self._objects, place, owner_uids(old), self._clock())
        return _at_version(stored, old["metadata"]["resourceVersion"]) if dry_run else stored

    def _generated(self, kind: Kind, metadata: Object) -> str:
        """A name that begins with ``generateName`` and is free."""
        for _ in range(_NAMES_TRIED):
            suffix = uuid.UUID(self._new_uid()).hex[-_GENERATED_SUFFIX_LENGTH:]
            name: str = metadata["generateName"] + suffix
            if self._objects.find(kind, (metadata.get("namespace", ""), name)) is None:
                return name
        raise AlreadyExists(f"{kind}: no free name was found for {metadata['generateName']!r}")

    def _status_of_new_pod(self, spec: Object) -> Object:
        if not spec.get("schedulingGates"):
            return {"phase": "Pending"}
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": timestamp(self._clock()),
        }
        return {"phase": "Pending", "conditions": [condition]}

    def _has_status(self, kind: Kind) -> bool:
        return kind not in self._without_status

    def _find(self, kind: Kind, namespace: str, name: str) -> Object:
        key = (namespace if kind.namespaced else "", name)
        obj = self._objects.find(kind, key)
        if obj is None:
            raise NotFound(f"there is no {kind} {_shown(key)}")
        return obj


def _inside(namespace: str | None, wanted: Wanted) -> Wanted:
    if namespace is None:
        return wanted
    return lambda obj: obj["metadata"].get("namespace", "") == namespace and wanted(obj)


def _owners(obj: Object) -> Any:
    return obj["metadata"].get("ownerReferences")


def _shown(key: Key) -> str:
    namespace, name = key
    return f"{namespace}/{name}" if namespace else name


def _at_version(obj: Object, version: str | None) -> Object:
    """What a dry run answers: the version that it would get may become that of something else."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata | ({"resourceVersion": version} if version else {})}
