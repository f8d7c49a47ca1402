"""Fields that the schema of a kind does not know: told to the client, and taken out of our kinds.

Source: Kubernetes documentation, "API Concepts" (field validation).
"""

from collections.abc import Iterator
from typing import Any

from vcjob.api.problems import Path, format_path
from vcjob.api.schema.types import ListOf, MapOf, Record, Type
from vcjob.api.types import Object
from vcjob.local.apiserver import query
from vcjob.local.apiserver.bodies import Body, duplicate_keys
from vcjob.local.apiserver.negotiation import JSON
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused

_FIELD_VALIDATION = ("Ignore", "Warn", "Strict")


def unknown_fields(value: Any, kind: Type, path: Path = ()) -> Iterator[Path]:
    """Where fields stand that the schema does not know, outermost only."""
    match kind:
        case Record() if isinstance(value, dict):
            for key, item in value.items():
                known = kind.fields.get(key)
                if known is None:
                    yield (*path, key)
                elif isinstance(item, dict | list):
                    yield from unknown_fields(item, known.type, (*path, key))
        case ListOf() if isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    yield from unknown_fields(item, kind.item, (*path, index))
        case MapOf() if isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, dict | list):
                    yield from unknown_fields(item, kind.value, (*path, key))


def pruned(value: Any, kind: Type) -> Any:
    """``value`` without unknown fields, but for those in records that keep them (pod templates)."""
    match kind:
        case Record() if isinstance(value, dict) and not kind.keeps_unknown:
            return {
                key: pruned(item, kind.fields[key].type)
                for key, item in value.items()
                if key in kind.fields
            }
        case ListOf() if isinstance(value, list):
            return [pruned(item, kind.item) for item in value]
        case MapOf() if isinstance(value, dict):
            return {key: pruned(item, kind.value) for key, item in value.items()}
    return value


def validated(
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
