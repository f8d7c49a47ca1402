"""OpenAPI of what is served, made from the schema tables: what ``kubectl explain`` reads.

Source: Kubernetes documentation, "The Kubernetes API" (OpenAPI V2 and V3). Each group and version
has its own v3 document; v2 is all of them in one.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from vcjob import __version__
from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.local.apiserver.openapi_schemas import Schemas, group_version_kind
from vcjob.local.apiserver.resources import Resource

_INFO = {"title": "vcjob", "version": __version__}

VERSION_2_IN_PROTOBUF = b"\n\x032.0\x12\n\n\x05vcjob\x12\x011B\x00"
"""``/openapi/v2`` as kubectl asks for it, which is protobuf only: swagger, info, and no paths.

kubectl reads it where v3 has no document of a kind, which here means that there is no such kind:
out of an empty document it finds that out and says so. Without one it complains of a content type.
Source: gnostic, OpenAPIv2.proto (Document: swagger 1, info 2, paths 8; Info: title 1, version 2).
"""

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


_Operation = Callable[[Resource, str, str, str, Object], Object]
"""Describes a verb of a resource at a path, with the name of its schema and its parameters."""


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
    schemas = Schemas("#/components/schemas/")
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": _documented_paths(resources, schemas, _operation_3, {"schema": _TEXT}),
        "components": {
            "schemas": schemas.found,
            "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"BearerToken": []}],
    }


def version_2(resources: Iterable[Resource]) -> Object:
    """The OpenAPI 2 document of some resources."""
    schemas = Schemas("#/definitions/")
    paths = _documented_paths(resources, schemas, _operation_2, _TEXT)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": schemas.found}


def _documented_paths(
    resources: Iterable[Resource], schemas: Schemas, operation: _Operation, text: Object
) -> Object:
    """What can be done where; ``text`` says that a part of a path is text."""
    paths: Object = {}
    for resource in resources:
        name = schemas.add_resource(resource)
        for path, operations in _paths(resource):
            paths[path] = {
                verb: operation(resource, verb, path, name, parameters)
                for verb, parameters in operations
            }
            if parts := [part[1:-1] for part in path.split("/") if part.startswith("{")]:
                paths[path]["parameters"] = [
                    {"name": part, "in": "path", "required": True, **text} for part in parts
                ]
    return paths


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
        "x-kubernetes-group-version-kind": group_version_kind(resource.kind),
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
        "x-kubernetes-group-version-kind": group_version_kind(resource.kind),
    }


def _document_path(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else "api/v1"
