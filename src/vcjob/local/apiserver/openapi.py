"""OpenAPI of what is served, made from the schema tables: what ``kubectl explain`` reads.

Source: Kubernetes documentation, "The Kubernetes API" (OpenAPI V2 and V3). Each group and version
has its own v3 document; v2 is all of them in one.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from vcjob import __version__
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

_INFO = {"title": "vcjob", "version": __version__}
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_FLAG = {"type": "boolean"}
_OF_WRITES = {"dryRun": _TEXT, "fieldManager": _TEXT, "fieldValidation": _TEXT}
_OF_LISTS = {
    "labelSelector": _TEXT,
    "fieldSelector": _TEXT,
    "limit": _NUMBER,
    "continue": _TEXT,
    "resourceVersion": _TEXT,
    "resourceVersionMatch": _TEXT,
    "timeoutSeconds": _NUMBER,
    "watch": _FLAG,
    "allowWatchBookmarks": _FLAG,
    "sendInitialEvents": _FLAG,
}
_OF_DELETES = {
    "dryRun": _TEXT,
    "gracePeriodSeconds": _NUMBER,
    "orphanDependents": _FLAG,
    "propagationPolicy": _TEXT,
}
_PATCHES = ("application/json-patch+json", "application/merge-patch+json",
            "application/strategic-merge-patch+json", "application/apply-patch+yaml")  # fmt: skip


def group_versions(resources: Iterable[Resource]) -> dict[str, tuple[str, str]]:
    """The paths below ``/openapi/v3/`` that have a document, with group and version."""
    return {_document_path(one.kind): (one.kind.group, one.kind.version) for one in resources}


def index(resources: Iterable[Resource]) -> Object:
    """``/openapi/v3``: where the documents are, with a hash that changes whenever they do."""
    known = list(resources)
    paths: Object = {}
    for path, wanted in group_versions(known).items():
        parts = [one for one in known if (one.kind.group, one.kind.version) == wanted]
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={_digest(parts)}"}
    return {"paths": paths}


def _digest(resources: Iterable[Resource]) -> str:
    """Of what documents are made of: this version of vcjob, and what definitions say."""
    parts = [(one.kind.plural, one.has_status, one.schema) for one in resources]
    text = __version__.encode() + msgspec.json.encode(parts)
    return hashlib.sha256(text).hexdigest()[:32]


def version_3(resources: Iterable[Resource]) -> Object:
    """The OpenAPI 3 document of some resources."""
    schemas = _Schemas("#/components/schemas/")
    paths: Object = {}
    for resource in resources:
        name = schemas.add_resource(resource)
        for path, operations in _paths(resource):
            paths[path] = {
                verb: _operation_3(resource, verb, path, name, parameters)
                for verb, parameters in operations
            }
            if names := [part[1:-1] for part in path.split("/") if part.startswith("{")]:
                paths[path]["parameters"] = [
                    {"name": one, "in": "path", "required": True, "schema": _TEXT} for one in names
                ]
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths,
        "components": {
            "schemas": schemas.found,
            "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"BearerToken": []}],
    }


def version_2(resources: Iterable[Resource]) -> Object:
    """The OpenAPI 2 document of some resources."""
    schemas = _Schemas("#/definitions/")
    paths: Object = {}
    for resource in resources:
        name = schemas.add_resource(resource)
        for path, operations in _paths(resource):
            paths[path] = {
                verb: _operation_2(resource, verb, path, name, parameters)
                for verb, parameters in operations
            }
            if names := [part[1:-1] for part in path.split("/") if part.startswith("{")]:
                paths[path]["parameters"] = [
                    {"name": one, "in": "path", "required": True, "type": "string"} for one in names
                ]
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": schemas.found}


class _Schemas:
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
        schema["x-kubernetes-group-version-kind"] = [_names(kind)]
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
            "x-kubernetes-group-version-kind": [{**_names(kind), "kind": f"{kind.kind}List"}],
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


def _paths(resource: Resource) -> Iterator[tuple[str, list[tuple[str, Object]]]]:
    """The paths of a resource, with the verbs there and their parameters."""
    kind = resource.kind
    start = f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1"
    place = f"{start}/namespaces/{{namespace}}" if kind.namespaced else start
    if kind.namespaced:
        yield f"{start}/{kind.plural}", [("get", _OF_LISTS)]
    if resource.verbs == ("create",):
        yield f"{place}/{kind.plural}", [("post", _OF_WRITES)]
        return
    collection: list[tuple[str, Object]] = [("get", _OF_LISTS), ("post", _OF_WRITES)]
    if "deletecollection" in resource.verbs:
        collection.append(("delete", {**_OF_LISTS, **_OF_DELETES}))
    yield f"{place}/{kind.plural}", collection
    one: list[tuple[str, Object]] = [
        ("get", {"resourceVersion": _TEXT}),
        ("put", _OF_WRITES),
        ("patch", {**_OF_WRITES, "force": _FLAG}),
        ("delete", _OF_DELETES),
    ]
    yield f"{place}/{kind.plural}/{{name}}", one
    if resource.has_status:
        yield f"{place}/{kind.plural}/{{name}}/status", one[:3]


def _of_definition(schema: Object) -> Object:
    """The schema of a custom kind, with what every object has."""
    always = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}}
    return {**schema, "properties": {**(schema.get("properties") or {}), **always}}


_ACTIONS = {"get": "get", "post": "post", "put": "put", "patch": "patch", "delete": "delete"}


def _action(verb: str, path: str) -> str:
    is_list = not path.endswith(("{name}", "/status"))
    if is_list and verb in ("get", "delete"):
        return "list" if verb == "get" else "deletecollection"
    return _ACTIONS[verb]


def _operation_id(verb: str, path: str, kind: Kind) -> str:
    where = "".join(
        part.strip("{}").title() for part in path.replace(".", "/").replace("-", "/").split("/")
    )
    return f"{_action(verb, path)}{kind.kind}{where}"


def _operation_3(resource: Resource, verb: str, path: str, name: str, parameters: Object) -> Object:
    answer = f"{name}List" if _action(verb, path) == "list" else name
    schema = {"$ref": f"#/components/schemas/{answer}"}
    if verb == "delete":
        schema = {"type": "object"}
    told: Object = {
        "operationId": _operation_id(verb, path, resource.kind),
        "parameters": [
            {"name": key, "in": "query", "schema": item} for key, item in parameters.items()
        ],
        "responses": {
            "201" if verb == "post" else "200": {
                "description": "OK",
                "content": {"application/json": {"schema": schema}},
            },
            "default": {"description": "a Status object"},
        },
        "x-kubernetes-action": _action(verb, path),
        "x-kubernetes-group-version-kind": _names(resource.kind),
    }
    if verb in ("post", "put"):
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        told["requestBody"] = {"content": content, "required": True}
    if verb == "patch":
        taken = [one for one in _PATCHES if not (resource.custom and "strategic" in one)]
        body: Object = {one: {"schema": {}} for one in taken}
        told["requestBody"] = {"content": body, "required": True}
    return told


def _operation_2(resource: Resource, verb: str, path: str, name: str, parameters: Object) -> Object:
    answer = f"{name}List" if _action(verb, path) == "list" else name
    asked: list[Any] = [{"name": key, "in": "query", **item} for key, item in parameters.items()]
    if verb in ("post", "put"):
        schema: Object = {"$ref": f"#/definitions/{name}"}
        asked.append({"name": "body", "in": "body", "required": True, "schema": schema})
    if verb == "patch":
        schema = {"type": "object"}
        asked.append({"name": "body", "in": "body", "required": True, "schema": schema})
    schema = {"type": "object"} if verb == "delete" else {"$ref": f"#/definitions/{answer}"}
    code = "201" if verb == "post" else "200"
    return {
        "operationId": _operation_id(verb, path, resource.kind),
        "produces": ["application/json", "application/yaml"],
        "consumes": list(_PATCHES) if verb == "patch" else ["application/json"],
        "parameters": asked,
        "responses": {code: {"description": "OK", "schema": schema}},
        "x-kubernetes-action": _action(verb, path),
        "x-kubernetes-group-version-kind": _names(resource.kind),
    }


def _document_path(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else "api/v1"


def _names(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
