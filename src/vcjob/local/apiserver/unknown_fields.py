"""Fields that the schema of a kind does not know: told to the client, and taken out of our kinds.

Source: Kubernetes documentation, "API Concepts" (field validation).
"""

from collections.abc import Iterator
from typing import Any

from vcjob.api.problems import Path
from vcjob.api.schema.types import ListOf, MapOf, Record, Type


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
    return value
