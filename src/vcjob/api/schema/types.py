"""The vocabulary that the schema tables are written in: types of fields, as data.

From these tables come field checks (``schema/fields.py``), defaults (``api/defaults.py``) and the
lists of fields that documentation is held against.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Text(msgspec.Struct, frozen=True):
    """A text. ``format`` names a check of ``api.validation.FORMATS``; lengths are in characters.

    An empty text counts as "not given" in Kubernetes' own objects, so a format or a choice is
    asked only of a text that is not empty; ``min_length`` forbids the empty one. Of a choice,
    ``also`` is taken too, but never suggested.
    """

    format: str = ""
    one_of: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    min_length: int = 0
    max_length: int | None = None


class Integer(msgspec.Struct, frozen=True):
    """A whole number within bounds (inclusive)."""

    minimum: int = INT32_MIN
    maximum: int = INT32_MAX


class Boolean(msgspec.Struct, frozen=True):
    """``true`` or ``false``."""


class Quantity(msgspec.Struct, frozen=True):
    """An amount of a resource, such as ``500m`` or ``1Gi``; never negative."""


class IntegerOrText(msgspec.Struct, frozen=True):
    """A port by number or by name (Kubernetes' IntOrString)."""


class Time(msgspec.Struct, frozen=True):
    """A point in time, RFC 3339."""


class Anything(msgspec.Struct, frozen=True):
    """Any JSON value."""


class ListOf(msgspec.Struct, frozen=True):
    """A list. With ``keys``, no two items (records) may agree in all of those fields."""

    item: "Type"
    keys: tuple[str, ...] = ()
    min_items: int = 0


class MapOf(msgspec.Struct, frozen=True):
    """An object with free keys, which must have ``key_format``."""

    value: "Type"
    key_format: str = ""


class Field(msgspec.Struct, frozen=True):
    """One field of a record. ``default`` is what the schema itself fills in (None: nothing)."""

    type: "Type"
    required: bool = False
    default: Any = None
    doc: str = ""


class Record(msgspec.Struct, frozen=True):
    """An object with named fields.

    With ``keeps_unknown``, fields that the table does not know draw a warning here and below, and
    stay; without it they are errors.
    """

    name: str
    fields: Mapping[str, Field]
    keeps_unknown: bool = False
    doc: str = ""


Type = (
    Text
    | Integer
    | Boolean
    | Quantity
    | IntegerOrText
    | Time
    | Anything
    | ListOf
    | MapOf
    | Record
)  # fmt: skip

TEXT = Text()
LABEL = Text("dns-1123-label")
SUBDOMAIN = Text("dns-1123-subdomain")
INTEGER = Integer()
COUNT = Integer(0)
POSITIVE = Integer(1)
LONG = Integer(INT64_MIN, INT64_MAX)
LONG_COUNT = Integer(0, INT64_MAX)
PORT = Integer(1, 65535)
FILE_MODE = Integer(0, 0o777)
USER_ID = Integer(0, INT32_MAX)
BOOLEAN = Boolean()
QUANTITY = Quantity()
INTEGER_OR_TEXT = IntegerOrText()
TIME = Time()
ANYTHING = Anything()
LABELS = MapOf(Text("label-value"), "qualified-name")
ANNOTATIONS = MapOf(TEXT, "annotation-key")
RESOURCES = MapOf(QUANTITY, "qualified-name")


def choice(*values: str) -> Text:
    """A text out of ``values``."""
    return Text(one_of=values)


def required(field_type: Type, doc: str = "") -> Field:
    """A field that must be given."""
    return Field(field_type, required=True, doc=doc)


def field(field_type: Type, doc: str = "", default: Any = None) -> Field:
    """A field that may be left out; ``default`` is what the schema then puts there."""
    return Field(field_type, default=default, doc=doc)


def record(
    name: str,
    fields: Mapping[str, Type | Field],
    *,
    keeps_unknown: bool = False,
    doc: str = "",
) -> Record:
    """A record; a bare type stands for an optional field of that type."""
    return Record(
        name,
        {key: item if isinstance(item, Field) else Field(item) for key, item in fields.items()},
        keeps_unknown,
        doc,
    )
