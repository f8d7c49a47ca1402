"""Bodies in protobuf, of the small kinds that kubectl and controllers in Go write that way.

``kubectl create configmap`` and its like send protobuf and try nothing else, so bodies of these
kinds are read. Answers are never protobuf: those clients take JSON. Read here rather than by a
library: that would need descriptors of all of Kubernetes' messages, for a table of field numbers.
Source: Kubernetes documentation, "API Concepts" (protobuf encoding idiosyncrasies).
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from vcjob.api.types import Object
from vcjob.local.apiserver.protobuf_messages import (
    DELETE_OPTIONS,
    KINDS,
    WRAPPED,
    Many,
    Message,
)
from vcjob.local.apiserver.status import Refused

PROTOBUF = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"


def decode_protobuf(body: bytes) -> Object:
    """The object of a protobuf body; raises Refused (400, 415 where only JSON is taken)."""
    if not body.startswith(_MAGIC):
        raise Refused(400, "the body of the request is no protobuf as Kubernetes writes it")
    try:
        wrapped = _message(body[len(_MAGIC) :], WRAPPED)
        names = wrapped.get("type", {})
        key = names.get("apiVersion", ""), names.get("kind", "")
        known = DELETE_OPTIONS if key[1] == "DeleteOptions" else KINDS.get(key)
        if known is None:
            raise _json_only(f"a body of the kind {' '.join(key)[:100]}")
        obj = _message(base64.b64decode(wrapped.get("raw", "")), known)
    except (ValueError, IndexError, OverflowError) as error:
        raise Refused(400, "the body of the request is no whole protobuf message") from error
    return {**obj, "apiVersion": key[0], "kind": key[1]}


def _json_only(what: str) -> Refused:
    return Refused(415, f"protobuf is not read here for {what}: send application/json")


def _message(data: bytes, known: Message) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        if number not in known:
            raise _json_only(f"field {number} of a message with {known[min(known)][0]}"
                             if known else f"field {number}")  # fmt: skip
        name, kind = known[number]
        if isinstance(kind, Many):
            if kind.is_map:
                pair = dict(_fields(_bytes(value)))
                key = _bytes(pair.get(1, b"")).decode()
                item = _value(pair.get(2, b""), kind.item)
                found.setdefault(name, {})[key] = "" if item is None else item
            else:
                item = _value(value, kind.item)
                found.setdefault(name, []).append("" if item is None else item)
        elif (item := _value(value, kind)) is not None:
            found[name] = item
    return found


def _value(value: int | bytes, kind: Any) -> Any:
    """A field's value as JSON has it; None if it is as good as not given."""
    match kind:
        case "text":
            return _bytes(value).decode() or None
        case "bytes":
            return base64.b64encode(_bytes(value)).decode() or None
        case "number" | "kept number":
            number = _signed(value)
            return number if number or kind == "kept number" else None
        case "flag":
            return _signed(value) != 0
        case "time" | "micro time":
            return _time(_bytes(value), kind == "micro time")
        case "port":
            parts = dict(_fields(_bytes(value)))
            text = _bytes(parts.get(3, b"")).decode()
            return (text if parts.get(1) else _signed(parts.get(2, 0))) or None
    return _message(_bytes(value), kind) or None


def _time(data: bytes, micro: bool) -> str | None:
    parts = dict(_fields(data))
    seconds = _signed(parts.get(1, 0))
    if not data or not 0 < seconds < 253402300800:
        return None
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{_signed(parts.get(2, 0)) // 1000:06}Z" if micro else f"{text}Z"


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and raw values of a message; raises ValueError, IndexError."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire = tag & 7
        value: int | bytes
        if wire == 0:
            value, place = _varint(data, place)
        elif wire in (1, 2, 5):
            size = {1: 8, 5: 4}.get(wire, 0)
            if wire == 2:
                size, place = _varint(data, place)
            if place + size > len(data):
                raise ValueError("a field is longer than its message")
            value, place = data[place : place + size], place + size
        else:
            raise ValueError("a field has no type")
        yield tag >> 3, value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a field has another type")
    return value


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a field has another type")
    return value - (1 << 64) if value >> 63 else value
