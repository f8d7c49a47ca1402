"""Label and field selectors, as the text of a query parameter.

Source: Kubernetes documentation, "Labels and Selectors" and "Field Selectors".
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from vcjob.api.kinds import EVENT, NAMESPACE, NODE, POD, SECRET, SERVICE, Kind
from vcjob.api.types import Object
from vcjob.api.validation import FORMATS
from vcjob.local.apiserver.status import Refused, qualified

Wanted = Callable[[Object], bool]
"""Whether an object is among those that a request is about."""

_Test = Callable[[Mapping[str, str]], bool]

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_SET = re.compile(r"\s*(?P<key>[^\s=!<>,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*")
_OTHER = re.compile(
    r"\s*(?P<not>!?)\s*(?P<key>[^\s=!<>,()]+)\s*"
    r"(?:(?P<operator>==|=|!=|<|>)\s*(?P<value>[^\s=!<>,()]*)\s*)?"
)
_ESCAPED = re.compile(r"\\([\\,=])")

_FIELDS: dict[Kind, tuple[str, ...]] = {
    POD: (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    EVENT: (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    NAMESPACE: ("status.phase",),
    NODE: ("spec.unschedulable",),
    SECRET: ("type",),
    SERVICE: ("spec.clusterIP", "spec.type"),
}
"""Fields that may be selected by, beside name and namespace (API reference of each kind)."""


def parse_label_selector(text: str) -> Wanted | None:
    """What a label selector asks for (None: nothing); raises Refused (400)."""
    tests: list[tuple[str, _Test]] = []
    rest = text
    while rest.strip():
        match = _SET.match(rest) or _OTHER.match(rest)
        if match is None:
            raise _bad("label", text, f"{rest.strip()[:60]!r} is no requirement")
        tests.append((match["key"], _label_test(match, text)))
        rest = rest[match.end() :]
        if rest and not rest.startswith(","):
            raise _bad("label", text, f"a comma is expected before {rest.strip()[:60]!r}")
        if rest and not rest[1:].strip():
            raise _bad("label", text, "a requirement is expected behind the last comma")
        rest = rest[1:]
    if not tests:
        return None
    checks = [test for _, test in tests]

    def wanted(obj: Object) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(check(labels) for check in checks)

    return wanted


def parse_field_selector(text: str, kind: Kind, more: tuple[str, ...] = ()) -> Wanted | None:
    """What a field selector asks for (None: nothing); raises Refused (400).

    ``more`` are fields that objects of the kind may be selected by, beside those of its kind here.
    """
    if not text.strip():
        return None
    checks: list[tuple[str, str, bool]] = []
    for part in re.split(r"(?<!\\),", text):
        match = re.fullmatch(r"\s*([^=!\\]+?)\s*(==|=|!=)(.*)", part, re.DOTALL)
        if match is None:
            raise _bad("field", text, f"{part[:60]!r} is not FIELD=VALUE")
        field, operator, value = match.groups()
        if field not in ("metadata.name", "metadata.namespace", *_FIELDS.get(kind, ()), *more):
            raise _bad("field", text, f"{qualified(kind)} cannot be selected by {field[:60]}")
        checks.append((field, _ESCAPED.sub(r"\1", value.strip()), operator == "!="))

    def wanted(obj: Object) -> bool:
        return all((_value(obj, field) != value) is unlike for field, value, unlike in checks)

    return wanted


def both(*selectors: Wanted | None) -> Wanted:
    """What all of ``selectors`` ask for."""
    given = [selector for selector in selectors if selector is not None]
    if not given:
        return lambda obj: True
    if len(given) == 1:
        return given[0]
    return lambda obj: all(selector(obj) for selector in given)


def _label_test(match: re.Match[str], text: str) -> _Test:
    key, operator = match["key"], match["operator"]
    _check(text, key, "qualified-name")
    if operator in ("in", "notin"):
        values = frozenset(value.strip() for value in match["values"].split(","))
        for value in values:
            _check(text, value, "label-value")
        if operator == "in":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: key not in labels or labels[key] not in values
    if operator is None:
        if match["not"]:
            return lambda labels: key not in labels
        return lambda labels: key in labels
    if match["not"]:
        raise _bad("label", text, f"! stands only before a key alone, not before {key}{operator}")
    value = match["value"]
    if operator in ("<", ">"):
        if not _NUMBER.fullmatch(value):
            raise _bad("label", text, f"{operator} needs a whole number")
        return _comparison(key, int(value), operator == ">")
    _check(text, value, "label-value")
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


def _comparison(key: str, bound: int, more: bool) -> _Test:
    def test(labels: Mapping[str, str]) -> bool:
        value = labels.get(key, "")
        if not _NUMBER.fullmatch(value):
            return False
        return int(value) > bound if more else int(value) < bound

    return test


def _check(text: str, part: str, form: str) -> None:
    if wrong := FORMATS[form](part) if part else "":
        raise _bad("label", text, f"{part[:60]!r}: {wrong}")


def _value(obj: Object, field: str) -> str:
    if field == "source":
        return str((obj.get("source") or {}).get("component", ""))
    value: Any = obj
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if field in ("spec.hostNetwork", "spec.unschedulable") else ""
    return str(value)


def _bad(which: str, text: str, why: str) -> Refused:
    return Refused(400, f"unable to parse the {which} selector {text[:200]!r}: {why}")
