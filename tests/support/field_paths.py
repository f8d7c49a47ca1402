"""The fields of a table as a list of paths, for documentation to be held against."""

from collections.abc import Iterator

from vcjob.api.schema.pods import POD_TEMPLATE
from vcjob.api.schema.types import ListOf, Record, Type


def field_paths(record: Record) -> Iterator[str]:
    """All fields at and below ``record``, like ``spec.containers[].env[].name``; parents first."""
    for name, field in record.fields.items():
        yield from _below(name, field.type)


def _below(path: str, kind: Type) -> Iterator[str]:
    yield path
    inner, suffix = (kind.item, "[]") if isinstance(kind, ListOf) else (kind, "")
    if isinstance(inner, Record):
        for name, field in inner.fields.items():
            yield from _below(f"{path}{suffix}.{name}", field.type)


def pod_fields() -> Iterator[str]:
    """All fields of a pod template (core/v1 PodTemplateSpec)."""
    return field_paths(POD_TEMPLATE)
