"""Create, update and patch.

Source: Kubernetes documentation, "API Concepts", and API conventions ("Verbs on Resources").
"""

from collections.abc import Callable
from functools import partial

import msgspec

from vcjob.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    JOB,
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)
from vcjob.api.schema.types import ANYTHING
from vcjob.api.types import Object
from vcjob.controller.cluster import ClusterError, Forbidden, NotFound
from vcjob.core.check import Lookup
from vcjob.core.scheduling.priorities import BUILT_IN
from vcjob.core.times import timestamp
from vcjob.local.apiserver import query
from vcjob.local.apiserver.admission import Admitted, admit_change, admit_new, admit_status
from vcjob.local.apiserver.apply import apply, taken_over
from vcjob.local.apiserver.binding import bind
from vcjob.local.apiserver.bodies import Body, decode_object, decode_yaml
from vcjob.local.apiserver.custom import established
from vcjob.local.apiserver.event_shapes import EVENT_OF_EVENTS, from_core, to_core
from vcjob.local.apiserver.identity import addressed, check_identity, fresh, keeping
from vcjob.local.apiserver.namespaces import Namespaces, still_holding
from vcjob.local.apiserver.negotiation import JSON
from vcjob.local.apiserver.patching import APPLY_PATCH, change_of
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused, Written, refusal_of
from vcjob.local.apiserver.unknown_fields import validated
from vcjob.local.store import Store
from vcjob.plugins.registry import Registry


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
        query.field_manager(asked)
        obj = decode_object(body.bytes, body.type)
        obj = addressed(resource, place, obj)
        if obj["metadata"].get("resourceVersion"):
            raise Refused(400, "resourceVersion should not be set on objects to be created")
        return await self._create(resource, place, asked, fresh(obj), body)

    async def bind(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Give a pod the node that a Binding names; raises Refused."""
        return await bind(self._store, place, asked, body, self._clock())

    async def _create(
        self, resource: Resource, place: Place, asked: Query, obj: Object, body: Body
    ) -> Written:
        name = obj["metadata"].get("name") or ""
        if resource.kind.namespaced:
            await self._namespaces.check(resource.kind, place.namespace, name)
        obj, warnings = validated(resource, obj, asked, body)
        if resource.kind == EVENT_OF_EVENTS:
            obj = to_core(obj)
        admitted = admit_new(resource, obj, await self._lookup(resource), self._plugins)
        if resource.stored == POD:
            await self._check_priority(admitted.object)
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

    async def _check_priority(self, pod: Object) -> None:
        """Refuse a pod of a class that there is not; raises Refused (403)."""
        name = pod["spec"].get("priorityClassName")
        if not name or name in BUILT_IN:
            return
        try:
            await self._store.get(PRIORITY_CLASS, "", name)
        except NotFound as error:
            told = Forbidden(f"no PriorityClass with name {name} was found")
            raise refusal_of(told, POD, pod["metadata"].get("name") or "") from error

    async def _lookup(self, resource: Resource) -> Lookup | None:
        if resource.stored not in (JOB, QUEUE):
            return None
        queues = (await self._store.list(QUEUE)).items
        classes = (await self._store.list(PRIORITY_CLASS)).items
        return Lookup(
            {queue["metadata"]["name"]: queue for queue in queues},
            frozenset(one["metadata"]["name"] for one in classes),
        )

    async def replace(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Put the object of a body in the place of the stored one; raises Refused."""
        obj = addressed(resource, place, decode_object(body.bytes, body.type))
        if obj["metadata"].get("name") != place.name:
            raise Refused(400, "the name of the object does not match the name on the URL")
        obj, warnings = validated(resource, obj, asked, body)
        manager = query.field_manager(asked) or body.sender
        return await self._modify(resource, place, asked, lambda old: obj, warnings, manager)

    async def patch(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        """Change an object by a patch, or apply one; raises Refused."""
        if body.type == APPLY_PATCH:
            return await self._apply(resource, place, asked, body)
        if query.flag(asked, "force") is not None:
            raise Refused(422, "PatchOptions is invalid: force: may only be given for an apply")
        change = change_of(resource, body)
        warnings: list[str] = []

        def checked(old: Object) -> Object:
            new, told = validated(resource, change(old), asked, Body(b"", JSON))
            warnings.extend(told)
            return new

        manager = query.field_manager(asked) or body.sender
        return await self._modify(resource, place, asked, checked, warnings, manager)

    async def _apply(self, resource: Resource, place: Place, asked: Query, body: Body) -> Written:
        manager = query.field_manager(asked)
        if not manager:
            raise Refused(422, "PatchOptions is invalid: fieldManager: Required value")
        given = decode_yaml(body.bytes)
        for field in ("apiVersion", "kind"):
            if not given.get(field):
                raise Refused(400, f"the object that is applied must say its {field}")
        wish = addressed(resource, place, given)
        if wish["metadata"].get("managedFields"):
            raise Refused(400, "metadata.managedFields must be nil")
        wish["metadata"].setdefault("name", place.name)
        if wish["metadata"]["name"] != place.name:
            raise Refused(400, "the name of the object does not match the name on the URL")
        wish, warnings = validated(resource, wish, asked, body)
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
        manager: str = "",
    ) -> Written:
        """Change an object; ``manager``, where one is named, takes over what it changes."""
        told: list[str] = []
        lookup = await self._lookup(resource) if resource.stored == QUEUE else None

        def admitted(stored: Object) -> Object:
            old = from_core(stored) if resource.kind == EVENT_OF_EVENTS else stored
            old = {**old, "apiVersion": resource.kind.api_version}
            new = change(old)
            if new is old:
                return stored
            check_identity(resource, old, new)
            if resource.kind == EVENT_OF_EVENTS:
                new = to_core(new)
            new = {**new, "apiVersion": resource.stored.api_version}
            new = keeping(new, stored)
            if resource.stored == NAMESPACE:
                new = still_holding(new, stored)
            if place.subresource == "status":
                return admit_status(resource, new, stored)
            result: Admitted = admit_change(resource, new, stored, lookup, self._plugins)
            told.extend(result.warnings)
            if not manager:
                return result.object
            kind = resource.record or ANYTHING
            return taken_over(stored, result.object, kind, manager, timestamp(self._clock()))

        stored = await self._store.modify(
            resource.stored,
            place.namespace,
            place.name,
            admitted,
            subresource=place.subresource,
            dry_run=query.is_dry_run(asked),
        )
        return Written(stored, 200, (*warnings, *told))
