"""Strategic merge patches: merge patches that merge keyed lists item by item.

Source: Kubernetes documentation, "Update API Objects in Place Using kubectl patch", and the
directives ``$patch``, ``$deleteFromPrimitiveList``, ``$setElementOrder`` and ``$retainKeys``.
"""

from typing import Any

from vcjob.api.schema.types import Type
from vcjob.api.types import Object
from vcjob.local.apiserver.merge_keys import field_type, is_set, item_type, keys_of
from vcjob.local.apiserver.status import Refused

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_PATCH = "$patch"


def strategic_merge(target: Any, patch: Any, kind: Type) -> Any:
    """``target`` (of the type ``kind``) with a patch applied; raises Refused (400).

    Neither is changed; what stays the same is shared.
    """
    if not isinstance(patch, dict):
        raise Refused(400, "a strategic merge patch is an object")
    return _object(target if isinstance(target, dict) else {}, patch, kind)


def _object(target: Object, patch: Object, kind: Type) -> Object:
    match patch.get(_PATCH):
        case "replace":
            return _object({}, {key: v for key, v in patch.items() if key != _PATCH}, kind)
        case "delete":
            return {}
        case None | "merge":
            pass
        case other:
            raise Refused(400, f"$patch cannot be {str(other)[:40]!r}")
    result = dict(target)
    if _RETAIN in patch:
        retained = _list_of(patch, _RETAIN)
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            gone = _list_of(patch, key)
            if isinstance(result.get(name), list):
                result[name] = [item for item in result[name] if item not in gone]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _value(result.get(key), value, key, field_type(kind, key))
    for key in patch:
        if key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            if isinstance(result.get(name), list):
                order = _list_of(patch, key)
                result[name] = _ordered(result[name], order, field_type(kind, name))
    return result


def _value(old: Any, new: Any, name: str, kind: Type) -> Any:
    if isinstance(new, dict):
        return _object(old if isinstance(old, dict) else {}, new, kind)
    if isinstance(new, list):
        before = old if isinstance(old, list) else []
        if keys_of(kind):
            return _keyed_list(before, new, kind)
        if is_set(name, kind):
            return [*before, *(item for item in new if item not in before)]
    return new


def _keyed_list(old: list[Any], patch: list[Any], kind: Type) -> list[Any]:
    key, item_kind = keys_of(kind)[0], item_type(kind)
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" and len(item) == 1
           for item in patch):  # fmt: skip
        return [_plain(i, item_kind) for i in patch if not (isinstance(i, dict) and _PATCH in i)]
    result = list(old)
    for item in patch:
        if not isinstance(item, dict) or item.get(key) is None:
            raise Refused(400, f"an item of the patch lacks its merge key {key!r}")
        places = [i for i, one in enumerate(result) if _key(one, key) == item[key]]
        if item.get(_PATCH) == "delete":
            result = [one for one in result if _key(one, key) != item[key]]
        elif places:
            result[places[0]] = _object(result[places[0]], item, item_kind)
        else:
            result.append(_plain(item, item_kind))
    return result


def _ordered(items: list[Any], order: list[Any], kind: Type) -> list[Any]:
    """Items that the order names in that order; others stay behind what they stood behind."""
    keys = keys_of(kind)
    wanted = [_key(entry, keys[0]) if keys else entry for entry in order]
    named = [item for item in items if (_key(item, keys[0]) if keys else item) in wanted]
    named.sort(key=lambda item: wanted.index(_key(item, keys[0]) if keys else item))
    waiting = iter(named)
    return [
        next(waiting) if (_key(item, keys[0]) if keys else item) in wanted else item
        for item in items
    ]


def _plain(value: Any, kind: Type) -> Any:
    """What a patch adds, without its directives."""
    if isinstance(value, dict):
        return _object({}, {k: v for k, v in value.items() if k != _PATCH}, kind)
    return value


def _key(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else None


def _list_of(patch: Object, key: str) -> list[Any]:
    value = patch[key]
    if not isinstance(value, list):
        raise Refused(400, f"{key[:80]!r} of the patch must be a list")
    return value
