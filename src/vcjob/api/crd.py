"""CustomResourceDefinitions of our kinds, made from the schema tables.

Source: job-api.md section 2. Unknown fields of pod templates are kept by the API server too
(docs/compatibility.md row 16).
"""

import msgspec

from vcjob.api.kinds import COMMAND, JOB, POD_GROUP, QUEUE, Kind
from vcjob.api.schema import job, objects
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
from vcjob.api.validation import PATTERNS


class Column(msgspec.Struct, frozen=True):
    """A column that ``kubectl get`` prints; ``wide`` ones only with ``-o wide``."""

    name: str
    type: str
    path: str
    wide: bool = False


class Installed(msgspec.Struct, frozen=True):
    """What a CRD says of a kind beside its schema."""

    record: Record
    short_names: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    has_status: bool = False


INSTALLED: dict[Kind, Installed] = {
    JOB: Installed(
        job.JOB,
        ("vcjob", "vj"),
        (
            Column("STATUS", "string", ".status.state.phase"),
            Column("minAvailable", "integer", ".status.minAvailable"),
            Column("RUNNINGS", "integer", ".status.running"),
            Column("AGE", "date", ".metadata.creationTimestamp"),
            Column("QUEUE", "string", ".spec.queue", wide=True),
        ),
        has_status=True,
    ),
    POD_GROUP: Installed(
        objects.POD_GROUP,
        ("pg", "podgroup-v1beta1"),
        (
            Column("STATUS", "string", ".status.phase"),
            Column("minMember", "integer", ".spec.minMember"),
            Column("RUNNINGS", "integer", ".status.running"),
            Column("AGE", "date", ".metadata.creationTimestamp"),
            Column("QUEUE", "string", ".spec.queue", wide=True),
        ),
    ),
    QUEUE: Installed(
        objects.QUEUE,
        ("q", "queue-v1beta1"),
        (Column("PARENT", "string", ".spec.parent"),),
        has_status=True,
    ),
    COMMAND: Installed(objects.COMMAND, ()),
}
"""The kinds that are ours to define on a cluster."""


def crd(kind: Kind) -> Object:
    """The CustomResourceDefinition of one of the kinds in ``INSTALLED``."""
    installed = INSTALLED[kind]
    version: Object = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _whole_object(installed.record)},
    }
    if installed.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in installed.columns]
    if installed.has_status:
        version["subresources"] = {"status": {}}
    names: Object = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    if installed.short_names:
        names["shortNames"] = list(installed.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _column(column: Column) -> Object:
    printed: Object = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.wide:
        printed["priority"] = 1
    return printed


def _whole_object(record: Record) -> Object:
    """The schema of a kind. What the API server itself knows (metadata) it checks itself."""
    fields = {name: item for name, item in record.fields.items() if name != "metadata"}
    schema = _record(Record(record.name, fields, doc=record.doc), False)
    schema["properties"]["metadata"] = {"type": "object"}
    required = schema.pop("required")
    if "spec" in required:
        schema["required"] = ["spec"]
    return schema


def _record(record: Record, lenient: bool) -> Object:
    """``lenient`` below a record that keeps unknown fields: there only types are asked for.

    Kubernetes' own objects take empty texts for "not given", which choices and patterns of a CRD
    would refuse; admission checks those fields in full.
    """
    lenient = lenient or record.keeps_unknown
    schema: Object = {
        "type": "object",
        "properties": {name: _field(item, lenient) for name, item in record.fields.items()},
    }
    if required := [name for name, item in record.fields.items() if item.required]:
        schema["required"] = required
    if lenient:
        # Needed at each level: it does not reach into properties that a schema names.
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if record.doc:
        schema["description"] = record.doc
    return schema


def _field(field: Field, lenient: bool) -> Object:
    schema = _schema(field.type, lenient)
    if field.default is not None:
        schema["default"] = field.default
    if field.doc:
        schema["description"] = field.doc
    return schema


def _schema(kind: Type, lenient: bool) -> Object:
    match kind:
        case Record():
            return _record(kind, lenient)
        case ListOf():
            return _list(kind, lenient)
        case MapOf():
            return {"type": "object", "additionalProperties": _schema(kind.value, lenient)}
        case Text():
            return {"type": "string"} if lenient else _text(kind)
        case Integer():
            return _integer(kind, lenient)
        case Boolean():
            return {"type": "boolean"}
        case Quantity() | IntegerOrText():
            choices = [{"type": "integer"}, {"type": "string"}]
            return {"anyOf": choices, "x-kubernetes-int-or-string": True}
        case Time():
            return {"type": "string", "format": "date-time", "nullable": True}
        case Anything():
            return {"x-kubernetes-preserve-unknown-fields": True}


def _list(kind: ListOf, lenient: bool) -> Object:
    schema: Object = {"type": "array", "items": _schema(kind.item, lenient)}
    if kind.min_items and not lenient:
        schema["minItems"] = kind.min_items
    if kind.keys and isinstance(kind.item, Record) and _are_keys(kind.keys, kind.item):
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(kind.keys)
    return schema


def _are_keys(keys: tuple[str, ...], record: Record) -> bool:
    """Keys of a list map must be required or have a default (Kubernetes documentation, "CRDs")."""
    fields = [record.fields[key] for key in keys]
    return all(field.required or field.default is not None for field in fields)


def _text(kind: Text) -> Object:
    schema: Object = {"type": "string"}
    if kind.one_of:
        schema["enum"] = [*kind.one_of, *kind.also]
    if pattern := PATTERNS.get(kind.format):
        schema["pattern"] = f"^{pattern}$"
    if kind.min_length:
        schema["minLength"] = kind.min_length
    if kind.max_length is not None:
        schema["maxLength"] = kind.max_length
    return schema


def _integer(kind: Integer, lenient: bool) -> Object:
    is_int32 = kind.minimum >= INT32_MIN and kind.maximum <= INT32_MAX
    schema: Object = {"type": "integer", "format": "int32" if is_int32 else "int64"}
    if kind.minimum > INT32_MIN and not lenient:
        schema["minimum"] = kind.minimum
    if kind.maximum < INT32_MAX and not lenient:
        schema["maximum"] = kind.maximum
    return schema
