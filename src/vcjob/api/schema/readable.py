"""The part of an object whose fields have the right types, so that rules can read it safely."""

from typing import Any

from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.schema.types import (
    Anything,
    Boolean,
    Integer,
    IntegerOrText,
    ListOf,
    MapOf,
    Quantity,
    Record,
    Text,
    Time,
    Type,
)

_NOTHING = object()


def readable_part(value: Any, record: Record) -> dict[str, Any]:
    """A copy of ``value`` without the fields that are null, unknown, or of a wrong type.

    Items of lists that are not readable leave an empty item of the right type behind, so that
    positions stay the same. What is out of bounds or has a bad format stays.
    """
    part = _readable(value, record)
    return part if isinstance(part, dict) else {}


def _readable(value: Any, kind: Type) -> Any:
    match kind:
        case Record() if isinstance(value, dict):
            return _known_fields(value, kind)
        case MapOf() if isinstance(value, dict):
            items = ((key, _readable(item, kind.value)) for key, item in value.items())
            return {key: item for key, item in items if item is not _NOTHING}
        case ListOf() if isinstance(value, list):
            parts = (_readable(item, kind.item) for item in value)
            return [_empty(kind.item) if part is _NOTHING else part for part in parts]
        case Anything():
            return value
    return value if _is_readable_scalar(value, kind) else _NOTHING


def _known_fields(value: dict[str, Any], record: Record) -> dict[str, Any]:
    part = {}
    for key, item in value.items():
        field = record.fields.get(key)
        if field is None or item is None:
            continue
        inner = _readable(item, field.type)
        if inner is not _NOTHING:
            part[key] = inner
    return part


def _is_readable_scalar(value: Any, kind: Type) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case Text() | Time():
            return isinstance(value, str)
        case Integer():
            return is_number
        case Boolean():
            return isinstance(value, bool)
        case IntegerOrText():
            return is_number or isinstance(value, str)
        case Quantity():
            return _is_quantity(value)
    return False


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        parse_quantity(str(value))
    except InvalidQuantity:
        return False
    return True


def _empty(kind: Type) -> Any:
    match kind:
        case Record() | MapOf():
            return {}
        case ListOf():
            return []
        case Integer():
            return 0
    return ""
