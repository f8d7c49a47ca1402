"""Columns that ``kubectl get`` prints: how each is called, and what it shows of an object.

Source: Kubernetes documentation, "Receiving resources as Tables" and "Additional printer columns".
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from vcjob.api.types import Object
from vcjob.core.times import seconds_of, short_duration

Show = Callable[[Object, float], Any]
"""The cell of an object, at a time in seconds since 1970."""

UNKNOWN = "<unknown>"
NONE = "<none>"

_STEP = re.compile(
    r"\.(?P<name>(?:\\.|[^.\[\\])+)"
    r"|\[(?P<index>\d+)\]"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[\?\(@\.(?P<field>\w+)\s*==\s*[\"'](?P<value>[^\"']*)[\"']\)\]"
)


class Column(msgspec.Struct, frozen=True):
    """A column; ``wide`` ones are shown only with ``-o wide``."""

    name: str
    type: str
    show: Show
    wide: bool = False
    format: str = ""
    doc: str = ""

    def definition(self) -> Object:
        """The column as a Table announces it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.doc,
            "priority": 1 if self.wide else 0,
        }


def text(name: str, show: Callable[[Object], Any], *, wide: bool = False) -> Column:
    """A column of what ``show`` says of an object."""
    return Column(name, "string", lambda obj, _: show(obj), wide)


def number(name: str, show: Callable[[Object], Any]) -> Column:
    """A column of whole numbers."""
    return Column(name, "integer", lambda obj, _: show(obj))


def path_column(name: str, kind: str, path: str, *, wide: bool = False, doc: str = "") -> Column:
    """A column as CustomResourceDefinitions declare it: the value at a JSON path.

    ``kind`` is an OpenAPI type, or ``date`` for the time since then.
    """
    steps = tuple(_STEP.finditer(path))
    if "".join(step[0] for step in steps) != path:
        steps = ()  # a path of a form that is not known shows nothing, as one without a value

    def show(obj: Object, now: float) -> Any:
        value = _at(obj, steps)
        if value is None:
            return UNKNOWN if kind == "date" else None
        if kind == "date":
            return age(value, now) if isinstance(value, str) else UNKNOWN
        return value

    return Column(name, "string" if kind == "date" else kind, show, wide, doc=doc)


def age(time: str, now: float) -> str:
    """How long ago an RFC 3339 time was, in the tools' own words: ``45s``, ``3m20s``, ``2d``."""
    then = seconds_of(time) if time else None
    return UNKNOWN if then is None else short_duration(now - then)


def _at(value: Any, steps: tuple[re.Match[str], ...]) -> Any:
    if not steps:
        return None
    for step in steps:
        name = step["quoted"] if step["name"] is None else re.sub(r"\\(.)", r"\1", step["name"])
        if step["index"] is not None:
            index = int(step["index"])
            value = value[index] if isinstance(value, list) and index < len(value) else None
        elif step["field"] is not None:
            items = value if isinstance(value, list) else []
            value = next((i for i in items if _has(i, step["field"], step["value"])), None)
        else:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return None
    return value


def _has(item: Any, field: str, value: str) -> bool:
    return isinstance(item, dict) and str(item.get(field)) == value


NAME = Column("Name", "string", lambda obj, _: obj["metadata"]["name"], format="name")
AGE = path_column("Age", "date", ".metadata.creationTimestamp")
