from typing import Any

import pytest

from vcjob.api.problems import format_path
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.objects import COMMAND, POD_GROUP, QUEUE
from vcjob.api.schema.readable import readable_part
from vcjob.api.schema.types import (
    BOOLEAN,
    COUNT,
    INTEGER_OR_TEXT,
    QUANTITY,
    TEXT,
    TIME,
    ListOf,
    MapOf,
    Text,
    choice,
    field,
    record,
    required,
)

INNER = record("Inner", {"deep": TEXT})
THING = record(
    "Thing",
    {
        "name": required(Text("dns-1123-label", min_length=1, max_length=5)),
        "count": COUNT,
        "size": QUANTITY,
        "on": BOOLEAN,
        "port": INTEGER_OR_TEXT,
        "when": TIME,
        "kind": choice("First", "Second"),
        "labels": MapOf(TEXT, "qualified-name"),
        "items": ListOf(record("Item", {"key": TEXT, "side": field(TEXT, default="left")}),
                        keys=("key", "side")),
        "inner": INNER,
        "open": record("Open", {"known": TEXT}, keeps_unknown=True),
    },
)  # fmt: skip


def told(value: Any) -> list[str]:
    return [
        f"{format_path(problem.path)}: {problem.message}" for problem in check_fields(value, THING)
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"count": 0, "size": "1Gi", "on": False, "port": "http", "when": "x", "kind": "First"},
        {"count": None, "size": 3, "port": 80, "kind": ""},
        {"size": 0.5, "labels": {"a/b": "c"}, "items": [{"key": "a"}, {"key": "b"}, {}, {}]},
        {"inner": {"deep": "x"}, "open": {"known": "x"}},
    ],
)
def test_right_values(more: dict[str, Any]) -> None:
    assert told({"name": "a", **more}) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": 1}, "name: name must be a text, but is the number 1"),
        ({"name": False}, "name: name must be a text, but is false"),
        ({"name": ""}, "name: name must not be empty"),
        ({"name": "abcdef"}, "name: name must have at most 5 characters"),
        ({"count": -1}, "count: count must be at least 0, but is the number -1"),
        ({"count": 1.5}, "count: count must be a whole number, but is the number 1.5"),
        ({"count": 10**30}, "count: count must be at most 2147483647, but is a number that is too "
         "big"),
        ({"size": "1 Gi"}, "size: size must be an amount such as 1, 500m or 2Gi, but is the text "
         '"1 Gi"'),
        ({"size": True}, "size: size must be an amount such as 1, 500m or 2Gi, but is true"),
        ({"on": "true"}, 'on: on must be true or false, but is the text "true"'),
        ({"port": 1.5}, "port: port must be a whole number or a text, but is the number 1.5"),
        ({"when": 3}, "when: when must be a time such as 2026-01-31T12:00:00Z, but is the number "
         "3"),
        ({"kind": "first"}, 'kind: kind cannot be the text "first"'),
        ({"labels": []}, "labels: labels must be an object, but is a list"),
        ({"labels": {"a": 1}}, "labels.a: a must be a text, but is the number 1"),
        ({"labels": {"a/b": True}}, 'labels["a/b"]: "a/b" must be a text, but is true'),
        ({"items": "x"}, 'items: items must be a list, but is the text "x"'),
        ({"items": [None]}, "items[0]: items[0] must be an object, but is null"),
        ({"items": [{"key": "a"}, {"key": "a", "side": "left"}]},
         "items[1].key: items[1] has the same key a, side left as items[0]"),
        ({"inner": {"x": 1}}, 'inner.x: unknown field "x" in inner'),
    ],
)  # fmt: skip
def test_wrong_values_are_told_with_what_they_are(more: dict[str, Any], message: str) -> None:
    assert told({"name": "a", **more}) == [message]


def test_missing_fields() -> None:
    assert told({}) == ['name: the object lacks the field "name"']


def test_unknown_fields_are_warnings_where_they_are_kept() -> None:
    (problem,) = check_fields({"name": "a", "open": {"knwon": 1}}, THING)
    assert problem.warning
    assert problem.hint == 'did you mean "known"?'


@pytest.mark.parametrize(
    ("key", "hint"),
    [("deep", '"deep" belongs in inner; check the indentation'), ("CONUT", 'mean "count"?')],
)
def test_unknown_fields_come_with_a_hint(key: str, hint: str) -> None:
    (problem,) = check_fields({"name": "a", key: "x"}, THING)
    assert hint in problem.hint


def test_a_long_value_is_shortened_in_messages() -> None:
    (message,) = told({"name": "a", "kind": "x" * 500})
    assert len(message) < 120


def test_the_readable_part_keeps_positions() -> None:
    value = {"name": 1, "count": -5, "items": ["x", {"key": "a", "z": 1}], "labels": {"a": None}}
    assert readable_part(value, THING) == {
        "count": -5, "items": [{}, {"key": "a"}], "labels": {}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (QUEUE, {"spec": {"weight": 1, "capability": {"cpu": 1}}}, {"spec": {"weight": 0}}),
        (POD_GROUP, {"spec": {"minMember": 2}}, {"spec": {"minMembr": 2}}),
        (COMMAND, {"action": "AbortJob"}, {"target": {"name": "j"}}),
    ],
)
def test_the_kinds_around_a_job(kind: Any, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    whole = {"apiVersion": "v", "kind": "k", "metadata": {"name": "n"}}
    assert check_fields({**whole, **right}, kind) == []
    assert check_fields({**whole, **wrong}, kind)
