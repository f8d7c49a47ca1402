"""Schemas of custom kinds in the vocabulary of our tables: for unknown fields and keyed lists.

What the tables cannot say stays with ``structural.py``. Source: Kubernetes documentation, "Extend
the Kubernetes API with CustomResourceDefinitions" (structural schemas).
"""

from typing import Any

from vcjob.api.schema.job import custom_object
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    INTEGER_OR_TEXT,
    LONG,
    TEXT,
    Field,
    ListOf,
    MapOf,
    Record,
    Type,
    choice,
    record,
)
from vcjob.api.types import Object

_ALWAYS = ("apiVersion", "kind", "metadata")
_SIMPLE: dict[str, Type] = {"string": TEXT, "integer": LONG, "boolean": BOOLEAN}


def record_of(kind: str, schema: Object) -> Record | None:
    """The fields of a custom kind; None if there is no schema, or one that keeps all."""
    whole = type_of(schema, kind)
    if not isinstance(whole, Record):
        return None
    fields: dict[str, Type | Field] = {
        name: item for name, item in whole.fields.items() if name not in _ALWAYS
    }
    return custom_object(kind, fields, whole.doc)


def type_of(schema: Any, name: str) -> Type:
    """The type of what a schema describes; ``name`` is how records in it are called."""
    if not isinstance(schema, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return ANYTHING
    if schema.get("x-kubernetes-int-or-string"):
        return INTEGER_OR_TEXT
    kind = str(schema.get("type") or "")
    if kind == "object":
        return _object(schema, name)
    if kind == "array":
        is_keyed = schema.get("x-kubernetes-list-type") == "map"
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if is_keyed else ()
        return ListOf(type_of(schema.get("items"), name), keys)
    return _SIMPLE.get(kind, ANYTHING)


def _object(schema: Object, name: str) -> Type:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if not properties and others:
        return MapOf(type_of(others, name))
    fields = {key: _field(item or {}, f"{name}.{key}") for key, item in (properties or {}).items()}
    if schema.get("x-kubernetes-embedded-resource"):
        fields |= {key: Field(ANYTHING) for key in _ALWAYS}
    return Record(name, fields, doc=schema.get("description") or "")


def _field(schema: Object, name: str) -> Field:
    doc = schema.get("description") or ""
    return Field(type_of(schema, name), default=schema.get("default"), doc=doc)


_OF_SCHEMAS: dict[str, Field] = {}

JSON_SCHEMA = Record("JSONSchemaProps", _OF_SCHEMAS, doc="What a value must be like.")
"""What a schema itself can have; it has schemas inside."""

_OF_SCHEMAS.update(
    record(
        "",
        {
            "$schema": TEXT,
            "additionalItems": ANYTHING,
            "additionalProperties": ANYTHING,
            "allOf": ListOf(JSON_SCHEMA),
            "anyOf": ListOf(JSON_SCHEMA),
            "default": ANYTHING,
            "description": TEXT,
            "enum": ListOf(ANYTHING),
            "example": ANYTHING,
            "exclusiveMaximum": BOOLEAN,
            "exclusiveMinimum": BOOLEAN,
            "externalDocs": ANYTHING,
            "format": TEXT,
            "id": TEXT,
            "items": JSON_SCHEMA,
            "maxItems": COUNT,
            "maxLength": COUNT,
            "maxProperties": COUNT,
            "maximum": ANYTHING,
            "minItems": COUNT,
            "minLength": COUNT,
            "minProperties": COUNT,
            "minimum": ANYTHING,
            "multipleOf": ANYTHING,
            "not": JSON_SCHEMA,
            "nullable": BOOLEAN,
            "oneOf": ListOf(JSON_SCHEMA),
            "pattern": TEXT,
            "properties": MapOf(JSON_SCHEMA),
            "required": ListOf(TEXT),
            "title": TEXT,
            "type": choice("object", "array", "string", "integer", "number", "boolean"),
            "uniqueItems": BOOLEAN,
            "x-kubernetes-embedded-resource": BOOLEAN,
            "x-kubernetes-int-or-string": BOOLEAN,
            "x-kubernetes-list-map-keys": ListOf(TEXT),
            "x-kubernetes-list-type": choice("atomic", "set", "map"),
            "x-kubernetes-map-type": choice("atomic", "granular"),
            "x-kubernetes-preserve-unknown-fields": BOOLEAN,
            "x-kubernetes-validations": ListOf(ANYTHING),
        },
    ).fields
)
