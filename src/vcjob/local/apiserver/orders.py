"""Bodies of requests that say what to do and are not stored: DeleteOptions, Eviction, Binding."""

from typing import Any

from vcjob.api.problems import errors, format_path
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.types import Record
from vcjob.api.types import Object
from vcjob.local.apiserver.bodies import Body, decode_object
from vcjob.local.apiserver.status import Refused


def decode_order(body: Body, expected: Record) -> dict[str, Any]:
    """A body of the kind that ``expected`` is called; an empty one says nothing.

    Raises Refused: 400 and 415 for what is no object of that kind, 422 for wrong fields.
    """
    given = decode_object(body.bytes, body.type) if body.bytes.strip() else {}
    kind = given.get("kind")
    if kind and kind != expected.name:
        raise Refused(400, f"the body of the request must be {expected.name}, not {str(kind)[:60]}")
    if problems := errors(check_fields(given, expected)):
        told = "; ".join(f"{format_path(one.path)}: {one.message}" for one in problems[:10])
        raise Refused(422, f"{expected.name} is invalid: {told}")
    return given


def named(order: Object, name: str) -> Object:
    """An order about the object ``name``, which must not name another; raises Refused (400)."""
    given = (order.get("metadata") or {}).get("name") or name
    if given != name:
        told = f"the name in the body, {given[:253]!r}, is not that of the URL, {name!r}"
        raise Refused(400, told)
    return order
