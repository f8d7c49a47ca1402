"""Kinds that CustomResourceDefinitions add, and all that is served at a moment.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions".
Versions of a kind differ in nothing but their name and their schema: nothing converts between them
(docs/api.md).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from vcjob.api.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from vcjob.api.types import Object
from vcjob.controller.clock import SystemClock
from vcjob.core.times import timestamp
from vcjob.local.apiserver.columns import AGE, NAME, path_column
from vcjob.local.apiserver.resources import BUILT_IN, Key, Resource, Subresource, by_key
from vcjob.local.apiserver.structural_types import record_of
from vcjob.local.store import Store

_FIXED = by_key(BUILT_IN)
_FIXED_NAMES = frozenset((kind.group, kind.plural) for kind in (one.kind for one in BUILT_IN))


class Served:
    """What is served: the built-in resources and those of the definitions in the store."""

    def __init__(self, store: Store, more: Sequence[Resource] = ()) -> None:
        self._store = store
        self._fixed = {**_FIXED, **by_key(more)}
        self._of_definitions: dict[tuple[str, str], tuple[Resource, ...]] = {}

    async def find(self, key: Key) -> Resource | None:
        """The resource that a path names, or None."""
        return self._fixed.get(key) or by_key(await self._custom()).get(key)

    async def all(self) -> list[Resource]:
        """Every resource."""
        return [*self._fixed.values(), *await self._custom()]

    async def namespaced_kinds(self) -> list[Kind]:
        """The stored kinds whose objects are in namespaces."""
        kinds = {resource.stored for resource in await self.all() if resource.kind.namespaced}
        return sorted(kinds)

    async def _custom(self) -> list[Resource]:
        """What the definitions add, worked out once for each version of a definition."""
        found = await self._store.list(CUSTOM_RESOURCE_DEFINITION)
        before, self._of_definitions = self._of_definitions, {}
        for obj in found.items:
            key = obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
            if (resources := before.get(key)) is None:
                resources = tuple(resources_of(obj))
                for one in resources:
                    if one.kind == one.stored:
                        self._store.declare(one.stored, status_subresource=one.has_status)
            self._of_definitions[key] = resources
        return [one for resources in self._of_definitions.values() for one in resources]


def resources_of(definition: Object) -> Iterator[Resource]:
    """What a CustomResourceDefinition adds; nothing for kinds that are served anyway."""
    spec = definition["spec"]
    group, names = spec["group"], spec["names"]
    if (group, names["plural"]) in _FIXED_NAMES:
        return
    namespaced = spec.get("scope") != "Cluster"
    versions = [version for version in spec.get("versions") or () if isinstance(version, dict)]
    storage = next((one["name"] for one in versions if one.get("storage")), "")
    for version in versions:
        if not version.get("served") or not storage:
            continue
        kind = Kind(group, version["name"], names["kind"], names["plural"], namespaced)
        stored = Kind(group, storage, names["kind"], names["plural"], namespaced)
        has_status = "status" in (version.get("subresources") or {})
        status = Subresource("status", ("get", "patch", "update"), kind)
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        yield Resource(
            kind,
            stored,
            (NAME, *(_columns(version) or (AGE,))),
            tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()),
            has_status,
            record_of(names["kind"], schema),
            custom=True,
            schema=schema,
            selectable=tuple(_selectable(version)),
            subresources=(status,) if has_status else (),
        )


def _columns(version: Object) -> tuple[Any, ...]:
    return tuple(
        path_column(
            column["name"],
            column["type"],
            column["jsonPath"],
            wide=column.get("priority", 0) > 0,
            doc=column.get("description", ""),
        )
        for column in version.get("additionalPrinterColumns") or ()
    )


def _selectable(version: Object) -> Iterator[str]:
    for field in version.get("selectableFields") or ():
        yield field["jsonPath"].removeprefix(".")


async def established(store: Store, definition: Object) -> Object:
    """Say of a definition that its kind is served; returns it with that."""
    now = timestamp(SystemClock().now())

    def change(obj: Object) -> Object:
        names = obj["spec"]["names"]
        accepted = {
            "listKind": f"{names['kind']}List",
            "singular": names["kind"].lower(),
            **names,
        }
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": now,
            }
            for kind, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ]
        stored = [one["name"] for one in obj["spec"]["versions"] if one.get("storage")]
        status = {"acceptedNames": accepted, "conditions": conditions, "storedVersions": stored}
        return {**obj, "status": status}

    name = definition["metadata"]["name"]
    return await store.modify(CUSTOM_RESOURCE_DEFINITION, "", name, change, subresource="status")
