"""JSON patches (RFC 6902) that share with the old object whatever they leave alone.

Not from a library: those copy the whole object first, and ten thousand pods of one template are
affordable only as long as they share it.
"""

from typing import Any

from vcjob.local.apiserver.status import Refused

_MOST_OPERATIONS = 10_000  # as Kubernetes' API server
_NOTHING = object()


def apply_json_patch(target: Any, patch: Any) -> Any:
    """``target`` with all operations of ``patch`` applied; raises Refused (400, 413, 422)."""
    if not isinstance(patch, list):
        raise Refused(400, "a JSON patch is a list of operations")
    if len(patch) > _MOST_OPERATIONS:
        raise Refused(413, f"a JSON patch may have at most {_MOST_OPERATIONS} operations")
    for number, operation in enumerate(patch):
        if not isinstance(operation, dict):
            raise Refused(400, f"operation {number} of the JSON patch is no object")
        target = _apply(target, operation, number)
    return target


def _apply(target: Any, operation: dict[str, Any], number: int) -> Any:
    op, path = operation.get("op"), _pointer(operation.get("path"), number)
    match op:
        case "add":
            return _set(target, path, _value(operation, number), number, insert=True)
        case "replace":
            _get(target, path, number)
            return _set(target, path, _value(operation, number), number, insert=False)
        case "remove":
            return _remove(target, path, number)
        case "test":
            if _get(target, path, number) != _value(operation, number):
                raise _failed(number, f"the value at {operation['path']!r} is another one")
            return target
        case "copy" | "move":
            source = _pointer(operation.get("from"), number)
            value = _get(target, source, number)
            if op == "move":
                if path[: len(source)] == source and path != source:
                    raise _failed(number, "a value cannot be moved into itself")
                target = _remove(target, source, number)
            return _set(target, path, value, number, insert=True)
    raise Refused(400, f"operation {number} of the JSON patch has an unknown op: {str(op)[:40]!r}")


def _pointer(text: Any, number: int) -> tuple[str, ...]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise Refused(400, f"operation {number} of the JSON patch has no path that begins with /")
    parts = text.split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _value(operation: dict[str, Any], number: int) -> Any:
    value = operation.get("value", _NOTHING)
    if value is _NOTHING:
        raise Refused(400, f"operation {number} of the JSON patch lacks a value")
    return value


def _get(target: Any, path: tuple[str, ...], number: int) -> Any:
    for part in path:
        if isinstance(target, dict) and part in target:
            target = target[part]
        elif isinstance(target, list):
            target = target[_index(part, len(target) - 1, number)]
        else:
            raise _failed(number, f"there is nothing at {_shown(path)}")
    return target


def _set(target: Any, path: tuple[str, ...], value: Any, number: int, *, insert: bool) -> Any:
    if not path:
        return value
    part, *rest = path
    if isinstance(target, dict):
        if rest:
            if part not in target:
                raise _failed(number, f"there is nothing at {_shown(path)}")
            value = _set(target[part], tuple(rest), value, number, insert=insert)
        return {**target, part: value}
    if isinstance(target, list):
        items = list(target)
        if rest:
            index = _index(part, len(items) - 1, number)
            items[index] = _set(items[index], tuple(rest), value, number, insert=insert)
        elif insert:
            index = len(items) if part == "-" else _index(part, len(items), number)
            items.insert(index, value)
        else:
            items[_index(part, len(items) - 1, number)] = value
        return items
    raise _failed(number, f"there is nothing at {_shown(path)}")


def _remove(target: Any, path: tuple[str, ...], number: int) -> Any:
    if not path:
        raise _failed(number, "the object itself cannot be removed")
    part, *rest = path
    if isinstance(target, dict) and part in target:
        if rest:
            return {**target, part: _remove(target[part], tuple(rest), number)}
        return {key: value for key, value in target.items() if key != part}
    if isinstance(target, list):
        index = _index(part, len(target) - 1, number)
        kept = [_remove(target[index], tuple(rest), number)] if rest else []
        return [*target[:index], *kept, *target[index + 1 :]]
    raise _failed(number, f"there is nothing at {_shown(path)}")


def _index(part: str, most: int, number: int) -> int:
    digits = part.isascii() and part.isdigit() and (part == "0" or part[0] != "0")
    if not digits or len(part) > 9 or int(part) > most:
        raise _failed(number, f"there is no position {part[:40]!r} in the list")
    return int(part)


def _shown(path: tuple[str, ...]) -> str:
    return repr("/" + "/".join(path))[:100]


def _failed(number: int, why: str) -> Refused:
    return Refused(422, f"operation {number} of the JSON patch cannot be carried out: {why}")
