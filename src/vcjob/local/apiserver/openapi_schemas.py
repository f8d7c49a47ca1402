"""The schemas of OpenAPI documents, made from the tables of fields and from definitions."""

from vcjob.api.kinds import Kind
from vcjob.api.schema.types import (
    INT32_MAX,
    INT32_MIN,
    Anything,
    Boolean,
    Field,
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
from vcjob.api.types import Object
from vcjob.local.apiserver.merge_keys import field_type, is_set, keys_of
from vcjob.local.apiserver.resources import Resource

_TEXT = {"type": "string"}


class Schemas:
    """Schemas by name; records that are used in many places are written once."""

    def __init__(self, start: str) -> None:
        self._start = start
        self.found: Object = {}
        self._records: dict[str, Record] = {}

    def add_resource(self, resource: Resource) -> str:
        """Take in the schema of a whole kind and of its lists; returns the name."""
        kind = resource.kind
        record = resource.record
        name = ".".join((*reversed((kind.group or "core").split(".")), kind.version, kind.kind))
        schema: Object = {"type": "object"}
        if resource.schema:
            schema = _of_definition(resource.schema)
        elif record is not None:
            schema = self._record_schema(record, name)
        else:
            schema["x-kubernetes-preserve-unknown-fields"] = True
        schema["x-kubernetes-group-version-kind"] = [group_version_kind(kind)]
        self.found[name] = schema
        self.found[f"{name}List"] = {
            "type": "object",
            "properties": {
                "apiVersion": _TEXT,
                "kind": _TEXT,
                "metadata": {"type": "object"},
                "items": {"type": "array", "items": self._reference(name)},
            },
            "required": ["items"],
            "x-kubernetes-group-version-kind": [
                {**group_version_kind(kind), "kind": f"{kind.kind}List"}
            ],
        }
        return name

    def _reference(self, name: str) -> Object:
        return {"$ref": f"{self._start}{name}"}

    def _record_schema(self, record: Record, owner: str) -> Object:
        properties: Object = {}
        for name, item in record.fields.items():
            properties[name] = self._field(record, name, item, owner)
        schema: Object = {"type": "object", "properties": properties}
        if required := [name for name, item in record.fields.items() if item.required]:
            schema["required"] = required
        if record.doc:
            schema["description"] = record.doc
        return schema

    def _field(self, record: Record, name: str, item: Field, owner: str) -> Object:
        kind = field_type(record, name)
        schema = self._schema(kind, owner)
        if keys := keys_of(kind):
            schema["x-kubernetes-list-type"] = "map"
            schema["x-kubernetes-list-map-keys"] = list(keys)
            schema["x-kubernetes-patch-merge-key"] = keys[0]
            schema["x-kubernetes-patch-strategy"] = "merge"
        elif is_set(name, kind):
            schema["x-kubernetes-list-type"] = "set"
            schema["x-kubernetes-patch-strategy"] = "merge"
        elif isinstance(kind, ListOf):
            schema["x-kubernetes-list-type"] = "atomic"
        if "$ref" in schema and (item.doc or item.default is not None):
            schema = {"allOf": [schema]} if self._start.startswith("#/comp") else schema
        if item.doc:
            schema["description"] = item.doc
        if item.default is not None:
            schema["default"] = item.default
        return schema

    def _schema(self, kind: Type, owner: str) -> Object:
        match kind:
            case Record():
                return self._reference(self._name_of(kind, owner))
            case ListOf():
                return {"type": "array", "items": self._schema(kind.item, owner)}
            case MapOf():
                values = self._schema(kind.value, owner)
                return {"type": "object", "additionalProperties": values}
            case Integer():
                is_int32 = kind.minimum >= INT32_MIN and kind.maximum <= INT32_MAX
                return {"type": "integer", "format": "int32" if is_int32 else "int64"}
            case Boolean():
                return {"type": "boolean"}
            case Text() if kind.one_of:
                return {"type": "string", "enum": [*kind.one_of, *kind.also]}
            case Quantity() | IntegerOrText():
                return {"type": "string", "format": "int-or-string"}
            case Time():
                return {"type": "string", "format": "date-time"}
            case Anything():
                return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {"type": "string"}

    def _name_of(self, record: Record, owner: str) -> str:
        """The name of a record, written down when it is first met."""
        name = record.name
        while name in self._records and self._records[name] is not record:
            name += "_"
        if name not in self._records:
            self._records[name] = record
            self.found[name] = {}
            self.found[name] = self._record_schema(record, owner)
        return name


def _of_definition(schema: Object) -> Object:
    """The schema of a custom kind, with what every object has."""
    always = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}}
    return {**schema, "properties": {**(schema.get("properties") or {}), **always}}


def group_version_kind(kind: Kind) -> Object:
    """What ``x-kubernetes-group-version-kind`` tells of a kind."""
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
