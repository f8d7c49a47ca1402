"""Server-side apply: a manager's wish for some fields, remembered, so that it can let go of them.

Source: Kubernetes documentation, "Server-Side Apply". Ownership is coarse: appliers own what they
apply. Updates and other patches own only what they took from those who owned it, so that objects
nobody applies have no record of managers, which would be larger than many of them (docs/api.md).
"""

from typing import Any

from vcjob.api.schema.types import Type
from vcjob.api.types import Object
from vcjob.local.apiserver.field_sets import (
    Fields,
    fields_of,
    is_keyed,
    part_of_item,
    part_of_value,
    read_fields,
    write_fields,
)
from vcjob.local.apiserver.merge_keys import field_type, is_set, item_type
from vcjob.local.apiserver.status import Cause, Refused

_APPLY, _UPDATE = "Apply", "Update"
_IDENTITY = (
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata", "f:name"),
    ("f:metadata", "f:namespace"),
)
_MISSING = object()


def apply(
    live: Object | None, wish: Object, kind: Type, manager: str, now: str, *, force: bool
) -> Object:
    """The object after ``manager`` applied ``wish`` to ``live`` (None: it does not exist yet).

    ``now`` is the time that is written beside the fields. What the manager applied earlier and no
    longer wishes goes, unless another manager owns it too. Raises Refused (409) if ``wish`` differs
    from what another manager owns, unless ``force``: then that manager loses those fields.
    """
    wish = without_managed_fields(wish)
    wished = fields_of(wish, kind) - frozenset(_IDENTITY)
    entries = list((live or {}).get("metadata", {}).get("managedFields") or [])
    own = next((one for one in entries if _is_of(one, manager)), None)
    others = [one for one in entries if one is not own]
    base = without_managed_fields(live or {})
    merged = _merge(base, wish, kind)
    differing = {path for path in wished if _differs(base, wish, kind, path)}
    others = _resolve(others, differing, force)
    owned_by_others = frozenset[tuple[str, ...]]().union(
        *(read_fields(one.get("fieldsV1")) for one in others)
    )
    dropped = read_fields((own or {}).get("fieldsV1")) - wished - owned_by_others
    if dropped:  # an empty map or list that was applied once is more than that by now
        leaves = fields_of(merged, kind)
        dropped -= {leaf[:length] for leaf in leaves for length in range(len(leaf))}
    for path in sorted(dropped, key=lambda path: (path[-1] != ".", -len(path))):
        merged = _without(merged, path, kind)
    if dropped:  # what was emptied and went, although an empty one is wished
        merged = _merge(merged, wish, kind)
    if live is not None and merged == base and own and read_fields(own["fieldsV1"]) == wished:
        return live
    entry = {
        "manager": manager,
        "operation": _APPLY,
        "apiVersion": wish.get("apiVersion", ""),
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": write_fields(wished),
    }
    return {**merged, "metadata": {**merged["metadata"], "managedFields": [*others, entry]}}


def taken_over(old: Object, new: Object, kind: Type, manager: str, now: str) -> Object:
    """``new`` with what ``manager`` changed of owned fields as its own, if it changed any.

    ``new`` is what an update or a patch that is no apply makes of ``old``; ``now`` is the time
    that is written beside the fields. The status stays whose it is: it is written apart.
    """
    entries = new["metadata"].get("managedFields")
    if not entries:
        return new
    kept: list[Object] = []
    taken: set[tuple[str, ...]] = set()
    own: Object = {"manager": manager, "operation": _UPDATE}
    before: Fields = frozenset()
    for entry in entries:
        fields = read_fields(entry.get("fieldsV1"))
        if {key: entry.get(key) for key in own} == own:
            before = fields
            continue
        lost = {
            path
            for path in fields
            if path[:1] != ("f:status",) and _find(old, kind, path) != _find(new, kind, path)
        }
        taken |= lost
        if not lost:
            kept.append(entry)
        elif fields - lost:
            kept.append({**entry, "fieldsV1": write_fields(fields - lost)})
    if not taken:
        return new
    owned = [path for path in before | taken if _find(new, kind, path) is not _MISSING]
    if owned:
        own |= {"apiVersion": new["apiVersion"], "time": now, "fieldsType": "FieldsV1"}
        kept.append({**own, "fieldsV1": write_fields(owned)})
    return {**new, "metadata": {**new["metadata"], "managedFields": kept}}


def without_managed_fields(obj: Object) -> Object:
    """An object without the record of who set what."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**obj, "metadata": kept}


def _is_of(entry: Object, manager: str) -> bool:
    return bool(entry.get("manager") == manager and entry.get("operation") == _APPLY)


def _resolve(others: list[Object], differing: set[tuple[str, ...]], force: bool) -> list[Object]:
    """The other managers' entries once conflicts are settled; raises Refused (409)."""
    causes: list[Cause] = []
    left: list[Object] = []
    for entry in others:
        fields: Fields = read_fields(entry.get("fieldsV1"))
        lost = fields & differing
        if lost and not force:
            manager = entry.get("manager", "")
            causes += [
                Cause("FieldManagerConflict", f'conflict with "{manager}"', _shown(path))
                for path in sorted(lost)
            ]
        kept = fields - lost
        if kept == fields:
            left.append(entry)
        elif kept:
            left.append({**entry, "fieldsV1": write_fields(kept)})
    if causes:
        number = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
        told = ", ".join(f"{cause.message}: {cause.field}" for cause in causes[:10])
        raise Refused(409, f"Apply failed with {number}: {told}", causes=causes)
    return left


def _shown(path: tuple[str, ...]) -> str:
    text = ""
    for part in path:
        kind, _, rest = part.partition(":")
        text += f".{rest}" if kind == "f" else f"[{rest}]" if rest else ""
    return text


def _merge(old: Any, wish: Any, kind: Type, name: str = "") -> Any:
    if isinstance(old, dict) and isinstance(wish, dict):
        result = dict(old)
        for key, value in wish.items():
            result[key] = _merge(old.get(key), value, field_type(kind, key), key)
        return result
    if isinstance(old, list) and isinstance(wish, list):
        if is_set(name, kind):
            return [*old, *(item for item in wish if item not in old)]
        if is_keyed(wish, kind) and is_keyed(old, kind):
            return _merge_items(old, wish, kind)
    return wish


def _merge_items(old: list[Any], wish: list[Any], kind: Type) -> list[Any]:
    wished = {part_of_item(item, kind): item for item in wish}
    merged = [
        _merge(item, wished.pop(part), item_type(kind))
        if (part := part_of_item(item, kind)) in wished
        else item
        for item in old
    ]
    return [*merged, *wished.values()]


def _differs(base: Object, wish: Object, kind: Type, path: tuple[str, ...]) -> bool:
    before = _find(base, kind, path)
    return before is not _MISSING and before != _find(wish, kind, path)


def _find(value: Any, kind: Type, path: tuple[str, ...]) -> Any:
    for part in path:
        name = part[2:]
        if part == ".":
            return True
        if part.startswith("f:") and isinstance(value, dict) and name in value:
            value, kind = value[name], field_type(kind, name)
        elif part.startswith("k:") and isinstance(value, list):
            items = (i for i in value if is_keyed([i], kind) and part_of_item(i, kind) == part)
            value, kind = next(items, _MISSING), item_type(kind)
        elif part.startswith("v:"):
            return True
        else:
            return _MISSING
    return value


def _without(value: Any, path: tuple[str, ...], kind: Type) -> Any:
    """``value`` without the field at ``path``, and without what is empty because of that."""
    part, rest = path[0], path[1:]
    name = part[2:]
    if part.startswith("f:") and isinstance(value, dict) and name in value:
        inner = _without(value[name], rest, field_type(kind, name)) if rest else _MISSING
        if inner is _MISSING or (inner in ({}, []) and value[name] not in ({}, [])):
            return {key: item for key, item in value.items() if key != name}
        return {**value, name: inner}
    if part.startswith("v:") and isinstance(value, list):
        return [item for item in value if part_of_value(item) != part]
    if part.startswith("k:") and isinstance(value, list):
        return list(_items_without(value, part, rest, kind))
    return value


def _items_without(items: list[Any], part: str, rest: tuple[str, ...], kind: Type) -> Any:
    for item in items:
        if not is_keyed([item], kind) or part_of_item(item, kind) != part:
            yield item
        elif rest != (".",):
            yield _without(item, rest, item_type(kind))
