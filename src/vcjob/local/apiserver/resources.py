"""What is served: one row a resource, for routing, discovery, tables and OpenAPI."""

from collections.abc import Iterable

import msgspec

from vcjob.api.crd import INSTALLED
from vcjob.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    ENDPOINT_SLICE,
    EVENT,
    JOB,
    LEASE,
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.schema.types import Record
from vcjob.api.types import Object
from vcjob.local.apiserver.columns import AGE, NAME, Column, path_column
from vcjob.local.apiserver.core_columns import COLUMNS
from vcjob.local.apiserver.event_shapes import EVENT_OF_EVENTS
from vcjob.local.apiserver.reviews import ACCESS_REVIEW, RULES_REVIEW, SUBJECT_REVIEW
from vcjob.local.apiserver.schemas.kinds import OF_KINDS

BINDING = Kind("", "v1", "Binding", "bindings")
EVICTION = Kind("policy", "v1", "Eviction", "evictions")
SCALE = Kind("autoscaling", "v1", "Scale", "scales")
_CONNECT = ("create", "get")
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_ONE_BY_ONE = tuple(verb for verb in VERBS if verb != "deletecollection")


class Subresource(msgspec.Struct, frozen=True):
    """A part of objects with a path of its own; ``kind`` is what is sent to it, if not them."""

    name: str
    verbs: tuple[str, ...]
    kind: Kind | None = None


class Resource(msgspec.Struct, frozen=True):
    """One kind as it is served.

    ``stored`` is the kind that the store keeps its objects under (another one where an object
    is served in two shapes or versions). ``selectable`` are fields of a custom kind by which its
    objects can be selected. ``custom`` kinds take no strategic merge patches;
    ``schema`` is what the definition of one says of its objects. What can only be created is no
    object but a question.
    """

    kind: Kind
    stored: Kind
    columns: tuple[Column, ...] = (NAME, AGE)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    record: Record | None = None
    custom: bool = False
    schema: Object | None = None
    selectable: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = VERBS

    @property
    def singular(self) -> str:
        """The name for one object, as users may type it."""
        return self.kind.kind.lower()


def _core(
    kind: Kind,
    *short_names: str,
    has_status: bool = False,
    all_of: bool = False,
    stored: Kind | None = None,
) -> Resource:
    return Resource(
        kind,
        stored or kind,
        COLUMNS.get(kind, (NAME, AGE)),
        short_names,
        ("all",) if all_of else (),
        has_status,
        OF_KINDS[kind],
        subresources=(_status_of(kind),) if has_status else (),
    )


def _ours(kind: Kind) -> Resource:
    installed = INSTALLED[kind]
    columns = tuple(
        path_column(column.name, column.type, column.path, wide=column.wide)
        for column in installed.columns
    )
    return Resource(
        kind,
        kind,
        (NAME, *(columns or (AGE,))),
        installed.short_names,
        (),
        installed.has_status,
        installed.record,
        custom=True,
        subresources=(_status_of(kind),) if installed.has_status else (),
    )


def _status_of(kind: Kind) -> Subresource:
    return Subresource("status", ("get", "patch", "update"), kind)


def _with(resource: Resource, *more: Subresource) -> Resource:
    return msgspec.structs.replace(resource, subresources=(*resource.subresources, *more))


BUILT_IN: tuple[Resource, ...] = (
    _with(_ours(JOB), Subresource("scale", ("get", "patch", "update"), SCALE)),
    _ours(POD_GROUP),
    _ours(QUEUE),
    _ours(COMMAND),
    _with(
        _core(POD, "po", has_status=True, all_of=True),
        Subresource("attach", _CONNECT, Kind("", "v1", "PodAttachOptions", "")),
        Subresource("binding", ("create",), BINDING),
        Subresource("eviction", ("create",), EVICTION),
        Subresource("exec", _CONNECT, Kind("", "v1", "PodExecOptions", "")),
        Subresource("log", ("get",), POD),
        Subresource("portforward", _CONNECT, Kind("", "v1", "PodPortForwardOptions", "")),
    ),
    _core(SERVICE, "svc", has_status=True, all_of=True),
    _core(CONFIG_MAP, "cm"),
    _core(SECRET),
    _core(PERSISTENT_VOLUME_CLAIM, "pvc", has_status=True),
    _core(EVENT, "ev"),
    _core(EVENT_OF_EVENTS, "ev", stored=EVENT),
    msgspec.structs.replace(_core(NAMESPACE, "ns", has_status=True), verbs=_ONE_BY_ONE),
    _core(NODE, "no", has_status=True),
    _core(SERVICE_ACCOUNT, "sa"),
    _core(NETWORK_POLICY, "netpol"),
    _core(PRIORITY_CLASS, "pc"),
    _core(LEASE),
    _core(ENDPOINT_SLICE),
    _core(CUSTOM_RESOURCE_DEFINITION, "crd", "crds", has_status=True),
    _core(MUTATING_WEBHOOK_CONFIGURATION),
    _core(VALIDATING_WEBHOOK_CONFIGURATION),
    *(
        Resource(kind, kind, verbs=("create",))
        for kind in (SUBJECT_REVIEW, ACCESS_REVIEW, RULES_REVIEW)
    ),
)
"""What is served whatever CustomResourceDefinitions there are."""

Key = tuple[str, str, str]
"""Group, version and plural name."""


def key_of(kind: Kind) -> Key:
    """What a path names a resource by."""
    return kind.group, kind.version, kind.plural


def by_key(resources: Iterable[Resource]) -> dict[Key, Resource]:
    """The resources by what paths name them by."""
    return {key_of(resource.kind): resource for resource in resources}
