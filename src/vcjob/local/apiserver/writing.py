"""Create, update, patch and delete.

Source: Kubernetes documentation, "API Concepts", and API conventions ("Verbs on Resources").
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from vcjob.api.kinds import (
    JOB,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    QUEUE,
    SERVICE,
    Kind,
)
from vcjob.api.problems import format_path
from vcjob.api.schema.types import ANYTHING
from vcjob.api.types import Object
from vcjob.controller.cluster import ClusterError, Conflict, NotFound
from vcjob.core.check import Lookup
from vcjob.core.times import timestamp
from vcjob.local.apiserver import query
from vcjob.local.apiserver.admission import (
    Admitted,
    admit_change,
    admit_new,
    admit_status,
    check_queue_removal,
)
from vcjob.local.apiserver.apply import apply
from vcjob.local.apiserver.bodies import decode_json, decode_object, decode_yaml, duplicate_keys
from vcjob.local.apiserver.custom import established, resources_of
from vcjob.local.apiserver.event_shapes import from_core, to_core
from vcjob.local.apiserver.eviction import mark_disrupted
from vcjob.local.apiserver.json_patch import apply_json_patch
from vcjob.local.apiserver.kinds import CUSTOM_RESOURCE_DEFINITION, EVENT_OF_EVENTS, SERVICE_ACCOUNT
from vcjob.local.apiserver.namespaces import Namespaces
from vcjob.local.apiserver.negotiation import JSON
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused, refusal_of, success
from vcjob.local.apiserver.strategic import strategic_merge
from vcjob.local.apiserver.unknown_fields import pruned, unknown_fields
from vcjob.local.merge_patch import merge_patch
from vcjob.local.store import Store
from vcjob.plugins.registry import Registry

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_FIELD_VALIDATION = ("Ignore", "Warn", "Strict")
_PROPAGATION = ("Background", "Foreground", "Orphan")
# Kinds whose last state answers a deletion; of others it is a Status (API reference).
_ANSWERED_WHEN_DELETED = (POD, SERVICE, PERSISTENT_VOLUME_CLAIM, SERVICE_ACCOUNT)
_SET_BY_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
                  "deletionGracePeriodSeconds", "selfLink", "managedFields")  # fmt: skip


class Written(msgspec.Struct, frozen=True):
    """What a write answers: the object (or a Status), the code, and warnings for the author."""

    object: Object
    code: int = 200
    warnings: tuple[str, ...] = ()
    is_status: bool = False


class Body(msgspec.Struct, frozen=True):
    """The body of a request, not yet decoded."""

    bytes: bytes
    type: str


class Writing:
    """Writes to the store on behalf of clients. ``clock`` is the time in seconds since 1970."""

    def __init__(
        self, store: Store, namespaces: Namespaces, plugins: Registry, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._namespaces = namespaces
        self._plugins = plugins
        self._clock = clock

    async def create(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Create the object of a body; raises Refused."""
        obj = decode_object(body.bytes, body.type)
        obj = _addressed(resource, place, obj)
        if obj["metadata"].get("resourceVersion"):
            raise Refused(400, "resourceVersion should not be set on objects to be created")
        return await self._create(resource, place, asked, _fresh(obj), body)

    async def _create(
        self, resource: Resource, place: Place, asked: Query, obj: Object, body: Body
    ) -> Written:
        name = obj["metadata"].get("name") or ""
        if resource.kind.namespaced:
            await self._namespaces.check(resource.kind, place.namespace, name)
        obj, warnings = _validated_fields(resource, obj, asked, body)
        if resource.kind == EVENT_OF_EVENTS:
            obj = to_core(obj)
        admitted = admit_new(resource, obj, await self._lookup(resource), self._plugins)
        dry_run = query.is_dry_run(asked)
        try:
            stored = await self._store.create(resource.stored, admitted.object, dry_run=dry_run)
        except ClusterError as error:
            raise refusal_of(error, resource.kind, name) from error
        if not dry_run:
            stored = await self._after_create(resource.stored, stored)
        return Written(stored, 201, (*warnings, *admitted.warnings))

    async def _after_create(self, kind: Kind, stored: Object) -> Object:
        if kind == NAMESPACE:
            await self._namespaces.created(stored)
            return await self._store.get(NAMESPACE, "", stored["metadata"]["name"])
        if kind == CUSTOM_RESOURCE_DEFINITION:
            return await established(self._store, stored)
        return stored

    async def _lookup(self, resource: Resource) -> Lookup | None:
        if resource.stored != JOB:
            return None
        queues = (await self._store.list(QUEUE)).items
        classes = (await self._store.list(PRIORITY_CLASS)).items
        return Lookup(
            {queue["metadata"]["name"]: queue for queue in queues},
            frozenset(one["metadata"]["name"] for one in classes),
        )

    async def replace(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Put the object of a body in the place of the stored one; raises Refused."""
        obj = _addressed(resource, place, decode_object(body.bytes, body.type))
        if obj["metadata"].get("name") != place.name:
            raise Refused(400, "the name of the object does not match the name on the URL")
        obj, warnings = _validated_fields(resource, obj, asked, body)
        return await self._modify(resource, place, asked, lambda old: obj, warnings)

    async def patch(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Change an object by a patch, or apply one; raises Refused."""
        if body.type == APPLY_PATCH:
            return await self._apply(resource, place, asked, body)
        patch = decode_json(body.bytes) if body.type in _PATCHES else None
        change: Callable[[Object], Object]
        if body.type == JSON_PATCH:
            change = partial(_swapped, apply_json_patch, patch)
        elif not isinstance(patch, dict) and body.type in _PATCHES:
            raise Refused(400, "the patch must be an object")
        elif body.type == MERGE_PATCH:
            change = partial(_swapped, merge_patch, patch)
        elif body.type == STRATEGIC_PATCH and not resource.custom:
            merge = partial(strategic_merge, kind=resource.record or ANYTHING)
            change = partial(_swapped, merge, patch)
        else:
            taken = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
            taken += [] if resource.custom else [STRATEGIC_PATCH]
            raise Refused(
                415,
                "the body of the request was in an unknown format - accepted media types include: "
                + ", ".join(taken),
            )
        warnings: list[str] = []

        def checked(old: Object) -> Object:
            new, told = _validated_fields(resource, change(old), asked, Body(b"", JSON))
            warnings.extend(told)
            return new

        return await self._modify(resource, place, asked, checked, warnings)

    async def _apply(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        manager = asked.get("fieldManager", "")
        if not manager:
            raise Refused(422, "PatchOptions is invalid: fieldManager: Required value")
        wish = _addressed(resource, place, decode_yaml(body.bytes))
        if wish["metadata"].get("managedFields"):
            raise Refused(400, "metadata.managedFields must be nil")
        wish["metadata"].setdefault("name", place.name)
        if wish["metadata"]["name"] != place.name:
            raise Refused(400, "the name of the object does not match the name on the URL")
        wish, warnings = _validated_fields(resource, wish, asked, body)
        applied = partial(
            apply,
            wish=wish,
            kind=resource.record or ANYTHING,
            manager=manager,
            now=timestamp(self._clock()),
            force=query.flag(asked, "force") or False,
        )
        try:
            return await self._modify(resource, place, asked, applied, warnings)
        except NotFound:
            if place.subresource:
                raise
        if wish["metadata"].get("uid") or wish["metadata"].get("resourceVersion"):
            raise Refused(
                409, f'"{place.name}" does not exist, but the object names a version of it'
            )
        made = await self._create(resource, place, asked, applied(None), body)
        return msgspec.structs.replace(made, code=201)

    async def _modify(
        self,
        resource: Resource,
        place: Place,
        asked: Query,
        change: Callable[[Object], Object],
        warnings: list[str],
    ) -> Written:
        told: list[str] = []

        def admitted(stored: Object) -> Object:
            old = from_core(stored) if resource.kind == EVENT_OF_EVENTS else stored
            old = {**old, "apiVersion": resource.kind.api_version}
            new = change(old)
            if new is old:
                return stored
            _check_identity(resource, old, new)
            if resource.kind == EVENT_OF_EVENTS:
                new = to_core(new)
            new = {**new, "apiVersion": resource.stored.api_version}
            new = _keeping(new, stored)
            if place.subresource == "status":
                return admit_status(resource, new, stored)
            result: Admitted = admit_change(resource, new, stored, self._plugins)
            told.extend(result.warnings)
            return result.object

        stored = await self._store.modify(
            resource.stored,
            place.namespace,
            place.name,
            admitted,
            subresource=place.subresource,
            dry_run=query.is_dry_run(asked),
        )
        return Written(stored, 200, (*warnings, *told))

    async def delete(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Delete an object; raises Refused. Answers the object while it is not gone."""
        options = _delete_options(asked, body)
        left = await self._delete(resource, place.namespace, place.name, options)
        if not options.dry_run:
            try:
                now = await self._store.get(resource.stored, place.namespace, place.name)
            except NotFound:
                now = None
            if now is not None and now["metadata"]["uid"] == left["metadata"]["uid"]:
                return Written(now)
        if resource.stored in _ANSWERED_WHEN_DELETED:
            return Written(left)
        status = success(resource.kind, place.name, left["metadata"]["uid"])
        return Written(status, is_status=True)

    async def delete_all(
        self, resource: Resource, objects: list[Object], asked: Query, body: Body
    ) -> None:
        """Delete each of some objects; what is gone meanwhile is no error. Raises Refused."""
        options = _delete_options(asked, body)
        for obj in objects:
            metadata = obj["metadata"]
            try:
                await self._delete(
                    resource, metadata.get("namespace", ""), metadata["name"], options
                )
            except NotFound:
                continue

    async def evict(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Delete a pod on behalf of an Eviction; raises Refused."""
        eviction = decode_object(body.bytes, body.type) if body.bytes else {}
        if (eviction.get("metadata") or {}).get("name", place.name) != place.name:
            raise Refused(400, "the name of the Eviction is not that of the pod")
        wanted = eviction.get("deleteOptions") or {}
        options = _delete_options(asked, Body(msgspec.json.encode(wanted), JSON))
        if not options.dry_run:
            marked = await mark_disrupted(
                self._store,
                place.namespace,
                place.name,
                uid=options.uid,
                resource_version=options.resource_version,
                now=self._clock(),
            )
            wanted = {**wanted, "preconditions": {"uid": marked["metadata"]["uid"]}}
        await self.delete(resource, place, asked, Body(msgspec.json.encode(wanted), JSON))
        return Written(success(resource.kind, place.name, ""), 201, is_status=True)

    async def _delete(
        self, resource: Resource, namespace: str, name: str, options: "_DeleteOptions"
    ) -> Object:
        if resource.stored == QUEUE:
            check_queue_removal(name)
        if resource.stored == NAMESPACE:
            return await self._namespaces.delete(
                name,
                uid=options.uid,
                resource_version=options.resource_version,
                dry_run=options.dry_run,
            )
        left = await self._store.delete(
            resource.stored,
            namespace,
            name,
            uid=options.uid,
            resource_version=options.resource_version,
            grace_period_seconds=options.grace,
            propagation=options.propagation,
            dry_run=options.dry_run,
        )
        if resource.stored == CUSTOM_RESOURCE_DEFINITION and not options.dry_run:
            for kind in {one.stored for one in resources_of(left)}:
                for obj in (await self._store.list(kind)).items:
                    metadata = obj["metadata"]
                    await self._store.delete(kind, metadata.get("namespace", ""), metadata["name"])
        return left


_PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)


class _DeleteOptions(msgspec.Struct, frozen=True):
    """How to delete; ``grace`` in seconds (None: as the object says)."""

    uid: str
    resource_version: str
    grace: int | None
    propagation: str
    dry_run: bool


def _delete_options(asked: Query, body: Body) -> _DeleteOptions:
    given = decode_object(body.bytes, body.type) if body.bytes.strip() else {}
    conditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds")
    if grace is None:
        grace = query.count(asked, "gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or grace < 0):
        raise Refused(422, "gracePeriodSeconds must be a whole number of at least 0")
    propagation = given.get("propagationPolicy") or query.choice(
        asked, "propagationPolicy", *_PROPAGATION
    )
    orphan = given.get("orphanDependents", query.flag(asked, "orphanDependents"))
    if not propagation:
        propagation = "Orphan" if orphan else "Background"
    if propagation not in _PROPAGATION:
        raise Refused(422, f"propagationPolicy must be one of {', '.join(_PROPAGATION)}")
    dry = given.get("dryRun")
    return _DeleteOptions(
        str(conditions.get("uid") or ""),
        str(conditions.get("resourceVersion") or ""),
        grace,
        propagation,
        dry == ["All"] if dry else query.is_dry_run(asked),
    )


def _swapped(function: Callable[[Any, Any], Any], patch: Any, old: Object) -> Object:
    new = function(old, patch)
    if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
        raise Refused(422, "the patch leaves no object with metadata")
    return new


def _addressed(resource: Resource, place: Place, obj: Object) -> Object:
    """An object for a place, with what the path says of it filled in; raises Refused (400)."""
    kind = resource.kind
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        found = obj.get(field) or expected
        if found != expected:
            raise Refused(
                400,
                f"the {field} of the object ({str(found)[:100]}) is not that of the URL "
                f"({expected})",
            )
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise Refused(400, "metadata must be an object")
    metadata = {key: value for key, value in metadata.items() if value is not None}
    namespace = metadata.pop("namespace", place.namespace) or place.namespace
    if kind.namespaced:
        if namespace != place.namespace:
            raise Refused(
                400,
                "the namespace of the provided object does not match the namespace sent on the "
                "request",
            )
        metadata["namespace"] = namespace
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def _fresh(obj: Object) -> Object:
    metadata = {key: v for key, v in obj["metadata"].items() if key not in _SET_BY_SERVER}
    return {**obj, "metadata": metadata}


def _check_identity(resource: Resource, old: Object, new: Object) -> None:
    """Refuse a change of what an object is; raises Refused (400, 422) or Conflict."""
    metadata, before = new["metadata"], old["metadata"]
    for field in ("name", "namespace"):
        if metadata.get(field, before.get(field)) != before.get(field):
            raise Refused(400, f"metadata.{field} cannot be changed")
    for field in ("apiVersion", "kind"):
        if new.get(field, old[field]) != old[field]:
            raise Refused(400, f"{field} cannot be changed")
    if metadata.get("uid") and metadata["uid"] != before["uid"]:
        raise Conflict(
            f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: "
            f"{before['uid']}"
        )
    version = metadata.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        raise Conflict(
            "the object has been modified; please apply your changes to the latest version and "
            "try again"
        )


def _keeping(new: Object, old: Object) -> Object:
    """A new state with what the server keeps of the old one whatever it says."""
    metadata, before = new["metadata"], old["metadata"]
    kept = {key: before[key] for key in _SET_BY_SERVER if key in before and key != "managedFields"}
    kept |= {key: before[key] for key in ("name", "namespace") if key in before}
    managed = metadata.get("managedFields", before.get("managedFields"))
    if managed and managed != [{}]:
        kept["managedFields"] = managed
    mine = {k: v for k, v in metadata.items() if k not in _SET_BY_SERVER}
    return {**new, "kind": old["kind"], "metadata": {**mine, **kept}}


def _validated_fields(
    resource: Resource, obj: Object, asked: Query, body: Body
) -> tuple[Object, list[str]]:
    """An object whose unknown fields were told, refused or dropped, as ``fieldValidation`` says."""
    rule = query.choice(asked, "fieldValidation", *_FIELD_VALIDATION) or "Warn"
    if resource.record is None:
        return obj, []
    told = []
    if rule != "Ignore":
        unknown = unknown_fields(obj, resource.record)
        told = [f'unknown field "{format_path(path)}"' for path in unknown]
        if rule == "Strict" and body.type == JSON and body.bytes:
            told += [f'duplicate field "{key}"' for key in duplicate_keys(body.bytes)]
    if told and rule == "Strict":
        kind, name = resource.kind, obj["metadata"].get("name", "")
        raise Refused(
            400,
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(told)}",
            details={"name": name} if name else None,
        )
    return pruned(obj, resource.record), told
