"""Schemas of custom kinds: objects are checked against them and completed by them.

Written here, because libraries for JSON Schema know neither defaults nor Kubernetes' extensions
(``nullable``, int-or-string, keyed lists), and the rest is a few keywords. Rules in CEL
(``x-kubernetes-validations``) and ``format`` are not checked (docs/api.md).
Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions";
OpenAPI Specification 3.0, "Schema Object".
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from vcjob.api.problems import Path, Problem, errors
from vcjob.api.schema.fields import check_fields, name_of, show
from vcjob.api.types import Object
from vcjob.local.apiserver.structural_types import JSON_SCHEMA

_PYTHON: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


def completed(value: Any, schema: Object) -> Any:
    """``value`` with the defaults of a schema, and without nulls where it has no place for them."""
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        return [completed(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    properties, others = _properties(schema)
    found = {
        key: item
        for key, item in value.items()
        if item is not None or properties.get(key, others).get("nullable", key not in properties)
    }
    for key, inner in properties.items():
        if key not in found and inner.get("default") is not None:
            found[key] = inner["default"]
    return {key: completed(item, properties.get(key, others)) for key, item in found.items()}


def faults(value: Any, schema: Object, path: Path = ()) -> Iterator[Problem]:
    """What is wrong with ``value``, which stands at ``path``, by a schema."""
    if value is None and schema.get("nullable"):
        return
    wrong_type = _type_fault(value, schema)
    if wrong_type:
        yield Problem(f"{name_of(path)} must be {wrong_type}, but is {show(value)}", path)
        return
    for told in _bounds(value, schema):
        yield Problem(f"{name_of(path)} {told}", path)
    if isinstance(value, dict):
        yield from _of_object(value, schema, path)
    elif isinstance(value, list):
        yield from _of_list(value, schema, path)
    yield from _of_combinations(value, schema, path)


def schema_problems(schema: Object, path: Path = ()) -> Iterator[Problem]:
    """What is wrong with a schema itself, fields of wrong types aside."""
    for keyword in ("minimum", "maximum", "multipleOf"):
        limit = schema.get(keyword)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
            yield Problem(f"{keyword} must be a number", (*path, keyword))
    if schema.get("multipleOf") == 0:
        yield Problem("multipleOf must not be 0", (*path, "multipleOf"))
    if (pattern := schema.get("pattern")) and _compiled(pattern) is None:
        told = f"pattern {pattern[:60]!r} is not understood here, so that it is not checked"
        yield Problem(told, (*path, "pattern"), warning=True)
    if not isinstance(schema.get("additionalProperties"), dict | bool | None):
        yield Problem(
            "additionalProperties must be true, false or a schema", (*path, "additionalProperties")
        )
    if isinstance(inner := schema.get("additionalProperties"), dict):  # no table tells its type
        found = check_fields(inner, JSON_SCHEMA, (*path, "additionalProperties"))
        yield from found
        if not errors(found):
            yield from schema_problems(inner, (*path, "additionalProperties"))
    for keyword in ("items", "not"):
        if isinstance(inner := schema.get(keyword), dict):
            yield from schema_problems(inner, (*path, keyword))
    for name, inner in (schema.get("properties") or {}).items():
        yield from schema_problems(inner or {}, (*path, "properties", name))
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(keyword) or ()):
            yield from schema_problems(inner or {}, (*path, keyword, index))


def default_problems(schema: Object, path: Path = ()) -> Iterator[Problem]:
    """Defaults of a schema without faults that do not fit where they would stand."""
    if schema.get("default") is not None:
        fitting = completed(schema["default"], schema)
        for fault in faults(fitting, schema, (*path, "default")):
            yield Problem(fault.message, fault.path)
    if isinstance(items := schema.get("items"), dict):
        yield from default_problems(items, (*path, "items"))
    for name, inner in _properties(schema)[0].items():
        yield from default_problems(inner, (*path, "properties", name))


def _properties(schema: Object) -> tuple[dict[str, Object], Object]:
    """The schemas of named fields, and that of all others."""
    named = {key: item or {} for key, item in (schema.get("properties") or {}).items()}
    others = schema.get("additionalProperties")
    return named, others if isinstance(others, dict) else {}


def _type_fault(value: Any, schema: Object) -> str:
    """What a value must be and is not; empty if it is."""
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            return "a whole number or a text"
        return ""
    if wanted not in _PYTHON:
        return ""
    if isinstance(value, bool) and wanted != "boolean":
        return _WORDS[wanted]
    if wanted == "integer" and isinstance(value, float) and value.is_integer():
        return ""
    return "" if isinstance(value, _PYTHON[wanted]) else _WORDS[wanted]


def _bounds(value: Any, schema: Object) -> Iterator[str]:
    if (allowed := schema.get("enum")) and value not in allowed:
        yield f"must be one of {', '.join(map(str, allowed))}, but is {show(value)}"
    if isinstance(value, str):
        yield from _lengths(len(value), schema, "Length", "characters")
        pattern = schema.get("pattern")
        compiled = _compiled(pattern) if pattern else None
        if compiled and not compiled.search(value):
            yield f"must match {pattern}, but is {show(value)}"
    elif isinstance(value, list):
        yield from _lengths(len(value), schema, "Items", "items")
    elif isinstance(value, dict):
        yield from _lengths(len(value), schema, "Properties", "fields")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _numbers(value, schema)


def _lengths(length: int, schema: Object, keyword: str, unit: str) -> Iterator[str]:
    least, most = schema.get(f"min{keyword}"), schema.get(f"max{keyword}")
    if least is not None and length < least:
        yield f"must have at least {least} {unit}, but has {length}"
    if most is not None and length > most:
        yield f"must have at most {most} {unit}, but has {length}"


def _numbers(value: float, schema: Object) -> Iterator[str]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and schema.get("exclusiveMinimum") and value <= least:
        yield f"must be more than {least}, but is {value}"
    elif least is not None and value < least:
        yield f"must be at least {least}, but is {value}"
    if most is not None and schema.get("exclusiveMaximum") and value >= most:
        yield f"must be less than {most}, but is {value}"
    elif most is not None and value > most:
        yield f"must be at most {most}, but is {value}"
    if (step := schema.get("multipleOf")) and Fraction(str(value)) % Fraction(str(step)):
        yield f"must be a multiple of {step}, but is {value}"


def _of_object(value: Object, schema: Object, path: Path) -> Iterator[Problem]:
    for name in schema.get("required") or ():
        if name not in value:
            yield Problem(f"{name} is required", (*path, name))
    properties, others = _properties(schema)
    for key, item in value.items():
        yield from faults(item, properties.get(key, others), (*path, key))
    if schema.get("additionalProperties") is False:
        for key in value.keys() - properties.keys():
            yield Problem(f"{key[:60]} is not a field of {name_of(path)}", (*path, key))


def _of_list(value: list[Any], schema: Object, path: Path) -> Iterator[Problem]:
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from faults(item, items, (*path, index))
    kind = schema.get("x-kubernetes-list-type")
    identities: list[Any] = value
    if kind == "map":
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        identities = [[one.get(k) for k in keys] for one in value if isinstance(one, dict)]
    elif kind != "set" and not schema.get("uniqueItems"):
        return
    known = set()
    for index, identity in enumerate(identities):
        shown = repr(identity)
        if shown in known:
            yield Problem(f"{name_of(path)} has the same item twice", (*path, index))
        known.add(shown)


def _of_combinations(value: Any, schema: Object, path: Path) -> Iterator[Problem]:
    for inner in schema.get("allOf") or ():
        yield from faults(value, inner or {}, path)
    if (any_of := schema.get("anyOf")) and not _fitting(value, any_of):
        yield Problem(f"{name_of(path)} fits none of the forms that it can have (anyOf)", path)
    if (one_of := schema.get("oneOf")) and (count := _fitting(value, one_of)) != 1:
        told = f"{name_of(path)} must fit exactly one of its forms (oneOf), but fits {count}"
        yield Problem(told, path)
    if (refused := schema.get("not")) is not None and _fitting(value, [refused]):
        yield Problem(f"{name_of(path)} has a form that it must not have (not)", path)


def _fitting(value: Any, schemas: list[Object]) -> int:
    return sum(1 for one in schemas if next(faults(value, one or {}), None) is None)


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """A pattern, or None for one of those that Go understands and Python does not."""
    try:
        return re.compile(pattern)
    except re.error:
        return None
