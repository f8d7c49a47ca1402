"""What a request says of how to delete: in its body, else in its query.

Source: Kubernetes API reference, "DeleteOptions" and "Eviction".
"""

import msgspec

from vcjob.api.schema.meta import OBJECT_META
from vcjob.api.schema.types import BOOLEAN, LONG_COUNT, TEXT, ListOf, choice, record
from vcjob.api.types import Object
from vcjob.local.apiserver import query
from vcjob.local.apiserver.bodies import Body
from vcjob.local.apiserver.orders import decode_order, named
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.status import Refused

_PROPAGATION = ("Background", "Foreground", "Orphan")

_DELETE_OPTIONS = record(
    "DeleteOptions",
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "dryRun": ListOf(choice("All")),
        "gracePeriodSeconds": LONG_COUNT,
        "ignoreStoreReadErrorWithClusterBreakingPotential": BOOLEAN,
        "orphanDependents": BOOLEAN,
        "preconditions": record("Preconditions", {"resourceVersion": TEXT, "uid": TEXT}),
        "propagationPolicy": choice(*_PROPAGATION),
    },
    keeps_unknown=True,
)
_EVICTION = record(
    "Eviction",
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": OBJECT_META,
        "deleteOptions": _DELETE_OPTIONS,
    },
    keeps_unknown=True,
)


class DeleteOptions(msgspec.Struct, frozen=True):
    """How to delete; ``grace`` in seconds (None: as the object says), ``propagation`` may be ""."""

    uid: str
    resource_version: str
    grace: int | None
    propagation: str
    dry_run: bool


def delete_options(asked: Query, body: Body) -> DeleteOptions:
    """The options of a request to delete; raises Refused (400, 415, 422)."""
    return options_of(asked, decode_order(body, _DELETE_OPTIONS))


def options_of(asked: Query, given: Object) -> DeleteOptions:
    """Options of a body that was checked, and what the query says beside it; raises Refused."""
    conditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds")
    propagation = given.get("propagationPolicy") or query.choice(
        asked, "propagationPolicy", *_PROPAGATION
    )
    orphan = given.get("orphanDependents")
    if orphan is None:
        orphan = query.flag(asked, "orphanDependents")
    if orphan is not None and propagation:
        raise Refused(422, "orphanDependents must not be given beside propagationPolicy")
    if not propagation and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    return DeleteOptions(
        conditions.get("uid") or "",
        conditions.get("resourceVersion") or "",
        query.count(asked, "gracePeriodSeconds") if grace is None else grace,
        propagation,
        bool(given.get("dryRun")) or query.is_dry_run(asked),
    )


def eviction(body: Body, name: str) -> Object:
    """An Eviction of the pod ``name``; raises Refused (400, 415, 422)."""
    return named(decode_order(body, _EVICTION), name)
