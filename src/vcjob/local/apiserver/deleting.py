"""Deletions on behalf of clients, with their options; evictions.

Source: Kubernetes documentation, "Garbage Collection" and "API-initiated Eviction".
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
from vcjob.local.apiserver.admission import check_queue_removal
from vcjob.local.apiserver.bodies import Body
from vcjob.local.apiserver.custom import resources_of
from vcjob.local.apiserver.delete_options import (
    DeleteOptions,
    delete_options,
    eviction,
    options_of,
)
from vcjob.local.apiserver.eviction import mark_disrupted
from vcjob.local.apiserver.namespaces import Namespaces
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Written, success
from vcjob.local.store import Store

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
        options = delete_options(asked, body)
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
        options = delete_options(asked, body)
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
        wanted = eviction(body, place.name).get("deleteOptions") or {}
        options = options_of(asked, wanted)
        if not options.dry_run:
            marked = await mark_disrupted(
                self._store,
                place.namespace,
                place.name,
                uid=options.uid,
                resource_version=options.resource_version,
                now=self._clock(),
            )
            uid = marked["metadata"]["uid"]
            options = msgspec.structs.replace(options, uid=uid, resource_version="")
        await self._delete(resource, place.namespace, place.name, options)
        return Written(success(resource.kind, place.name, ""), 201, is_status=True)

    async def _delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions
    ) -> Object:
        if resource.stored == QUEUE:
            queues = (await self._store.list(QUEUE)).items
            check_queue_removal(name, {queue["metadata"]["name"]: queue for queue in queues})
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
