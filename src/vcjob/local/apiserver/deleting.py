"""Deletions on behalf of clients, with their options; evictions.

Source: Kubernetes API reference, "DeleteOptions" and "Eviction".
"""

from collections.abc import Callable

import msgspec

from vcjob.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    QUEUE,
    SERVICE,
    SERVICE_ACCOUNT,
)
from vcjob.api.types import Object
from vcjob.controller.cluster import NotFound
from vcjob.local.apiserver import query
from vcjob.local.apiserver.admission import check_queue_removal
from vcjob.local.apiserver.bodies import Body, decode_object
from vcjob.local.apiserver.custom import resources_of
from vcjob.local.apiserver.eviction import mark_disrupted
from vcjob.local.apiserver.namespaces import Namespaces
from vcjob.local.apiserver.negotiation import JSON
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused, Written, success
from vcjob.local.store import Store

_PROPAGATION = ("Background", "Foreground", "Orphan")
# Kinds whose last state answers a deletion; of others it is a Status (API reference).
_ANSWERED_WHEN_DELETED = (POD, SERVICE, PERSISTENT_VOLUME_CLAIM, SERVICE_ACCOUNT)


class Deleting:
    """Deletions from the store. ``clock`` is the time in seconds since 1970."""

    def __init__(self, store: Store, namespaces: Namespaces, clock: Callable[[], float]) -> None:
        self._store = store
        self._namespaces = namespaces
        self._clock = clock

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
