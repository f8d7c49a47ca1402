"""Objects in the forms that clients ask for: as they are, only their metadata, or as a Table."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from vcjob.api.types import Object
from vcjob.local.apiserver.answers import Answer, LongAnswer
from vcjob.local.apiserver.event_shapes import EVENT_OF_EVENTS, from_core
from vcjob.local.apiserver.negotiation import PARTIAL, TABLE, Media
from vcjob.local.apiserver.resources import Resource

FORMS = frozenset((TABLE, PARTIAL))
FORMS_OF_LISTS = frozenset((TABLE, f"{PARTIAL}List"))


def served(resource: Resource, obj: Object) -> Object:
    """A stored object as the resource shows it."""
    if resource.kind == resource.stored:
        return obj
    if resource.kind == EVENT_OF_EVENTS:
        return from_core(obj)
    return {**obj, "apiVersion": resource.kind.api_version}


def one(resource: Resource, obj: Object, media: Media, include: str, code: int = 200) -> Answer:
    """The answer that is one object. ``include`` is what rows of a Table carry."""
    if media.form == TABLE:
        version = obj["metadata"].get("resourceVersion", "")
        row = row_shape(resource, media, include)(obj)
        shown = {**_table(resource, media, {"resourceVersion": version}), "rows": [row]}
    elif media.form == PARTIAL:
        shown = _partial(obj, media)
    else:
        shown = served(resource, obj)
    return Answer(shown, code, media)


def many(
    resource: Resource, items: Sequence[Object], metadata: Object, media: Media, include: str
) -> LongAnswer:
    """The answer that is a list of objects; ``metadata`` is that of the list."""
    if media.form == TABLE:
        shape = row_shape(resource, media, include)
        return LongAnswer(_table(resource, media, metadata), "rows", items, shape, media)
    if media.form:
        head = {"kind": f"{PARTIAL}List", "apiVersion": media.api_version, "metadata": metadata}
        return LongAnswer(head, "items", items, lambda obj: _partial(obj, media), media)
    kind = resource.kind
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    return LongAnswer(head, "items", items, lambda obj: served(resource, obj), media)


def watched(resource: Resource, media: Media, include: str) -> Callable[[Object], Object]:
    """What turns stored objects into the objects of watch events; only the first Table has
    column definitions."""
    if media.form == TABLE:
        shape = row_shape(resource, media, include)
        columns = True

        def table(obj: Object) -> Object:
            nonlocal columns
            version = obj["metadata"].get("resourceVersion", "")
            shown = {**_table(resource, media, {"resourceVersion": version}), "rows": [shape(obj)]}
            if not columns:
                shown["columnDefinitions"] = None
            columns = False
            return shown

        return table
    if media.form:
        return lambda obj: _partial(obj, media)
    return lambda obj: served(resource, obj)


def _partial(obj: Object, media: Media) -> Object:
    """The metadata of an object alone."""
    return {"kind": PARTIAL, "apiVersion": media.api_version, "metadata": obj["metadata"]}


def row_shape(resource: Resource, media: Media, include: str) -> Callable[[Object], Object]:
    """What makes rows of a Table; ``include`` is None, Metadata (or "") or Object."""
    now = time.time()

    def row(obj: Object) -> Object:
        cells: list[Any] = [column.show(obj, now) for column in resource.columns]
        if include == "None":
            return {"cells": cells}
        carried = served(resource, obj) if include == "Object" else _partial(obj, media)
        return {"cells": cells, "object": carried}

    return row


def _table(resource: Resource, media: Media, metadata: Object) -> Object:
    return {
        "kind": TABLE,
        "apiVersion": media.api_version,
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in resource.columns],
    }
