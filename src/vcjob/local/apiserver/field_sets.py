"""Sets of fields of an object, and how ``managedFields`` write them (FieldsV1).

Source: Kubernetes API reference, ``FieldsV1``: ``f:NAME`` is a field, ``k:{...}`` an item of a list
by its keys, ``v:VALUE`` an item of a set, ``.`` the thing itself.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from vcjob.api.schema.types import Type
from vcjob.api.types import Object
from vcjob.local.apiserver.merge_keys import default_of, field_type, is_set, item_type, keys_of

Fields = frozenset[tuple[str, ...]]
"""Fields by their paths, outermost part first, each part as FieldsV1 writes it."""

_ITSELF = "."


def fields_of(value: Object, kind: Type) -> Fields:
    """All that an object sets: its leaves, and each item of a keyed list."""
    return frozenset(_leaves(value, kind, ()))


def part_of_item(item: Any, kind: Type) -> str:
    """An item of a keyed list as a part of a path."""
    keys = {key: item.get(key, default_of(kind, key)) for key in sorted(keys_of(kind))}
    return "k:" + msgspec.json.encode(keys).decode()


def part_of_value(item: Any) -> str:
    """An item of a set as a part of a path."""
    return "v:" + msgspec.json.encode(item).decode()


def is_keyed(items: list[Any], kind: Type) -> bool:
    """Whether the items of a list can be told apart by the keys of its type."""
    keys = keys_of(kind)
    return bool(keys) and all(
        isinstance(item, dict)
        and all(item.get(key, default_of(kind, key)) is not None for key in keys)
        for item in items
    )


def write_fields(fields: Iterable[tuple[str, ...]]) -> Object:
    """Fields as FieldsV1."""
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for part in path:
            node = node.setdefault(part, {})
    return tree


def read_fields(tree: Any) -> Fields:
    """FieldsV1 as fields."""
    return frozenset(_paths(tree, ())) if isinstance(tree, dict) and tree else frozenset()


def _leaves(value: Any, kind: Type, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            inner, below = field_type(kind, name), (*path, f"f:{name}")
            if isinstance(item, list) and item and is_set(name, inner):
                yield from ((*below, part_of_value(one)) for one in item)
            else:
                yield from _leaves(item, inner, below)
    elif isinstance(value, list) and value and is_keyed(value, kind):
        for item in value:
            below = (*path, part_of_item(item, kind))
            yield (*below, _ITSELF)
            yield from _leaves(item, item_type(kind), below)
    else:
        yield path


def _paths(tree: Object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not tree:
        yield path
        return
    for part, inner in tree.items():
        if isinstance(inner, dict):
            yield from _paths(inner, (*path, part))
