"""Checks an object against a schema table: unknown and missing fields, types, formats, bounds."""

from collections.abc import Iterator
from typing import Any

import msgspec

from vcjob.api.problems import Path, Problem, format_path
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
from vcjob.api.suggestions import closest, suggest
from vcjob.api.validation import FORMATS

_LONGEST_SHOWN = 60
_MOST_HINTS = 20
_SEARCH_DEPTH = 3


class _Place(msgspec.Struct, frozen=True):
    """A record on the way to the value that is looked at."""

    path: Path
    record: Record


def check_fields(value: Any, record: Record, path: Path = ()) -> list[Problem]:
    """All problems of ``value`` as an object of the kind ``record``; ``path`` is where it stands.

    Null stands for "not given", as in the Kubernetes API.
    """
    return list(_check(value, record, path, (), False))


def name_of(path: Path) -> str:
    """The last name of a path, with the positions behind it: ``tasks[0]``, ``"a/key"[0]``."""
    start = max((i for i, part in enumerate(path) if isinstance(part, str)), default=0)
    name = format_path(path[start : start + 1])
    if name.startswith('["'):
        name = name[1:-1]
    return name + format_path(path[start + 1 :]) or "the object"


def show(value: Any) -> str:
    """A value as messages name it: ``the text "x"``, ``the number 3``, ``a list``."""
    if isinstance(value, str):
        text = value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}…"
        return f'the text "{text}"' if text else "an empty text"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value:.20g}" if isinstance(value, float) else _show_integer(value)
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "null"


def _show_integer(value: int) -> str:
    return f"the number {value}" if value.bit_length() <= 64 else "a number that is too big"


def _check(
    value: Any, kind: Type, path: Path, around: tuple[_Place, ...], lenient: bool
) -> Iterator[Problem]:
    match kind:
        case Record():
            yield from _check_record(value, kind, path, around, lenient)
        case ListOf():
            yield from _check_list(value, kind, path, around, lenient)
        case MapOf():
            yield from _check_map(value, kind, path, around, lenient)
        case Text():
            yield from _check_text(value, kind, path)
        case Integer():
            yield from _check_integer(value, kind, path)
        case Quantity():
            yield from _check_quantity(value, path)
        case Boolean():
            if not isinstance(value, bool):
                hint = "write it without quotes" if value in ("true", "false") else ""
                yield _wrong_type(value, "true or false", path, hint)
        case IntegerOrText():
            if isinstance(value, bool) or not isinstance(value, int | str):
                yield _wrong_type(value, "a whole number or a text", path)
        case Time():
            if not isinstance(value, str):
                yield _wrong_type(value, "a time such as 2026-01-31T12:00:00Z", path)
        case Anything():
            return


def _wrong_type(value: Any, expected: str, path: Path, hint: str = "") -> Problem:
    return Problem(f"{name_of(path)} must be {expected}, but is {show(value)}", path, hint)


def _check_record(
    value: Any, record: Record, path: Path, around: tuple[_Place, ...], lenient: bool
) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _wrong_type(value, "an object", path)
        return
    lenient = lenient or record.keeps_unknown
    around = (*around, _Place(path, record))
    unknown = 0
    for key, item in value.items():
        field = record.fields.get(key)
        if field is None:
            unknown += 1  # a hint takes long to find, and nobody reads so many
            yield Problem(
                f'unknown field "{key[:_LONGEST_SHOWN]}" in {name_of(path)}',
                (*path, key),
                _where_it_belongs(key, around) if unknown <= _MOST_HINTS else "",
                warning=lenient,
            )
        elif item is not None:
            yield from _check(item, field.type, (*path, key), around, lenient)
    for key, field in record.fields.items():
        if field.required and value.get(key) is None:
            yield Problem(f'{name_of(path)} lacks the field "{key}"', (*path, key), field.doc)


def _where_it_belongs(key: str, around: tuple[_Place, ...]) -> str:
    """A hint for an unknown field: where a field of that name exists, or the closest name here."""
    here = around[-1]
    if not (below := _find_below(key, here.record)):
        for place in reversed(around[:-1]):
            if key in place.record.fields:
                where = format_path(place.path) or "the top of the object"
                return f'"{key}" belongs in {where}; check the indentation'
        return suggest(key, here.record.fields)
    below = f"{format_path(here.path)}.{below}".lstrip(".")
    if closest(key, here.record.fields):
        return f'{suggest(key, here.record.fields)} ("{key}" exists in {below})'
    return f'"{key}" belongs in {below}; check the indentation'


def _find_below(key: str, record: Record) -> str:
    """The path below ``record`` to the nearest record that has the field ``key``."""
    level = [("", record)]
    for _ in range(_SEARCH_DEPTH):
        deeper: list[tuple[str, Record]] = []
        for path, parent in level:
            for name, field in parent.fields.items():
                inner, suffix = field.type, ""
                if isinstance(inner, ListOf):
                    inner, suffix = inner.item, "[]"
                if isinstance(inner, Record):
                    below = f"{path}.{name}{suffix}".lstrip(".")
                    if key in inner.fields:
                        return below
                    deeper.append((below, inner))
        level = deeper
    return ""


def _check_list(
    value: Any, kind: ListOf, path: Path, around: tuple[_Place, ...], lenient: bool
) -> Iterator[Problem]:
    if not isinstance(value, list):
        hint = f"begin each item of {name_of(path)} with '- '" if isinstance(value, dict) else ""
        if isinstance(value, str | int | float):
            hint = f"write it as a list of one: [{msgspec.json.encode(str(value)).decode()}]"
            if isinstance(value, str) and path[-1:] == ("command",) and " " in value:
                # One item would be the name of a program with spaces in it.
                hint = f"write it as a list: {msgspec.json.encode(['sh', '-c', value]).decode()}"
        yield _wrong_type(value, "a list", path, hint)
        return
    if len(value) < kind.min_items:
        yield Problem(f"{name_of(path)} must have at least {kind.min_items} item", path)
    for index, item in enumerate(value):
        yield from _check(item, kind.item, (*path, index), around, lenient)
    if kind.keys and isinstance(kind.item, Record):
        yield from _check_distinct(value, kind.item, kind.keys, path)


def _check_distinct(
    items: list[Any], record: Record, keys: tuple[str, ...], path: Path
) -> Iterator[Problem]:
    seen: dict[tuple[str, ...], int] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        values = [item.get(key, record.fields[key].default) for key in keys]
        if values[0] is None or values[0] == "":
            continue  # that it is missing is told elsewhere
        identity = tuple(repr(value) for value in values)
        first = seen.setdefault(identity, index)
        if first != index:
            shown = ", ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True))
            yield Problem(
                f"{name_of((*path, index))} has the same {shown} as {name_of((*path, first))}",
                (*path, index, keys[0]),
                "each must be different",
            )


def _check_map(
    value: Any, kind: MapOf, path: Path, around: tuple[_Place, ...], lenient: bool
) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _wrong_type(value, "an object", path)
        return
    for key, item in value.items():
        if kind.key_format and (wrong := FORMATS[kind.key_format](key)):
            yield Problem(f'the key "{key[:_LONGEST_SHOWN]}" must {wrong}', (*path, key))
        if item is None and isinstance(kind.value, Text):
            yield Problem(
                f'"{key[:_LONGEST_SHOWN]}" has no value, which counts as an empty text',
                (*path, key),
                'write "" to say so',
                warning=True,
            )
        else:
            yield from _check(item, kind.value, (*path, key), around, lenient)


def _check_text(value: Any, kind: Text, path: Path) -> Iterator[Problem]:
    if not isinstance(value, str):
        hint = "put it in quotes" if isinstance(value, int | float) else ""
        if isinstance(value, bool):
            hint += "; without them YAML reads y, n, yes, no, on and off as true or false"
        yield _wrong_type(value, "a text", path, hint)
        return
    if len(value) < kind.min_length:
        yield Problem(f"{name_of(path)} must not be empty", path)
    elif not value:
        return
    elif kind.max_length is not None and len(value.encode()) > kind.max_length:
        yield Problem(f"{name_of(path)} must have at most {kind.max_length} characters", path)
    elif kind.one_of and value not in kind.one_of + kind.also:
        best = closest(value, kind.one_of)
        choices = ", ".join(kind.one_of)
        hint = f'did you mean "{best}"? One of: {choices}' if best else f"one of: {choices}"
        yield Problem(f"{name_of(path)} cannot be {show(value)}", path, hint)
    elif kind.format and (wrong := FORMATS[kind.format](value)):
        yield Problem(f"{name_of(path)} must {wrong}, but is {show(value)}", path)


def _check_integer(value: Any, kind: Integer, path: Path) -> Iterator[Problem]:
    if isinstance(value, bool) or not isinstance(value, int):
        quoted = isinstance(value, str) and value.strip("+-").isdecimal()
        hint = "write it without quotes" if quoted else ""
        yield _wrong_type(value, "a whole number", path, hint)
    elif not kind.minimum <= value <= kind.maximum:
        least = f"at least {kind.minimum}"
        most = f"at most {kind.maximum}"
        yield _wrong_type(value, least if value < kind.minimum else most, path)


def _check_quantity(value: Any, path: Path) -> Iterator[Problem]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        yield _wrong_type(value, "an amount such as 1, 500m or 2Gi", path)
        return
    try:
        amount = parse_quantity(str(value))
    except InvalidQuantity:
        hint = "binary units: Ki Mi Gi Ti Pi Ei; decimal units: n u m k M G T P E"
        yield _wrong_type(value, "an amount such as 1, 500m or 2Gi", path, hint)
        return
    if amount < 0:
        yield _wrong_type(value, "at least 0", path)
