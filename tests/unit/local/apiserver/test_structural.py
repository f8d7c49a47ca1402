"""Schemas of custom kinds: what they fill in, what they refuse, and what is wrong with them."""

import pytest

from vcjob.api.problems import errors, format_path
from vcjob.local.apiserver.structural import (
    completed,
    default_problems,
    faults,
    schema_problems,
)

NUMBER = {"type": "number"}
TEXT = {"type": "string"}


def of(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (of(a={"type": "integer"}), {"a": 1}),
        (of(a={"type": "integer"}), {"a": 1.0}),
        (of(a=NUMBER), {"a": 1.5}),
        (of(a=TEXT), {}),
        (of(a={**TEXT, "nullable": True}), {"a": None}),
        ({"x-kubernetes-int-or-string": True}, "80%"),
        ({"x-kubernetes-int-or-string": True}, 80),
        ({**TEXT, "enum": ["a", "b"]}, "a"),
        ({**TEXT, "pattern": "^a+$"}, "aa"),
        ({**TEXT, "pattern": r"\pL("}, "told when the definition was made"),
        ({**NUMBER, "multipleOf": 0.1}, 0.3),
        ({**NUMBER, "minimum": 1, "exclusiveMinimum": True}, 1.1),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, ["a", "b"]),
        ({"type": "object", "additionalProperties": TEXT}, {"x": "y"}),
        ({"oneOf": [of(a=TEXT) | {"required": ["a"]}, {"required": ["b"]}]}, {"a": "x"}),
        ({"not": {"required": ["b"]}}, {"a": 1}),
        ({"anyOf": [TEXT, NUMBER]}, 1),
        ({}, {"whatever": [1, None]}),
    ],
)
def test_what_fits_has_no_faults(schema, value):
    assert list(faults(value, schema)) == []


@pytest.mark.parametrize(
    ("schema", "value", "where", "told"),
    [
        (of(a={"type": "integer"}), {"a": "1"}, "a", "a whole number"),
        (of(a={"type": "integer"}), {"a": True}, "a", "a whole number"),
        (of(a={"type": "integer"}), {"a": 1.5}, "a", "a whole number"),
        (of(a=TEXT), {"a": None}, "a", "a text"),
        (of(a=TEXT), [], "", "an object"),
        (of(a={"type": "boolean"}), {"a": "true"}, "a", "true or false"),
        ({"x-kubernetes-int-or-string": True}, 1.5, "", "a whole number or a text"),
        ({**of(a=TEXT), "required": ["a"]}, {}, "a", "a is required"),
        (of(a={**TEXT, "enum": ["x", "y"]}), {"a": "z"}, "a", "one of x, y"),
        (of(a={**TEXT, "pattern": "^a+$"}), {"a": "b"}, "a", "must match ^a+$"),
        (of(a={**TEXT, "minLength": 2}), {"a": "b"}, "a", "at least 2 characters"),
        (of(a={**TEXT, "maxLength": 2}), {"a": "bcd"}, "a", "at most 2 characters"),
        (of(a={**NUMBER, "minimum": 3}), {"a": 2}, "a", "at least 3"),
        (of(a={**NUMBER, "maximum": 3}), {"a": 4}, "a", "at most 3"),
        (of(a={**NUMBER, "minimum": 3, "exclusiveMinimum": True}), {"a": 3}, "a", "more than 3"),
        (of(a={**NUMBER, "maximum": 3, "exclusiveMaximum": True}), {"a": 3}, "a", "less than 3"),
        (of(a={**NUMBER, "multipleOf": 3}), {"a": 4}, "a", "a multiple of 3"),
        (of(a={"type": "array", "items": NUMBER}), {"a": [1, "b"]}, "a[1]", "a number"),
        (of(a={"type": "array", "minItems": 1}), {"a": []}, "a", "at least 1 items"),
        (of(a={"type": "array", "uniqueItems": True}), {"a": [1, 1]}, "a[1]", "twice"),
        (
            of(a={"type": "array", "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["n"]}),
            {"a": [{"n": 1, "x": 1}, {"n": 1, "x": 2}]},
            "a[1]",
            "twice",
        ),
        ({"type": "object", "additionalProperties": NUMBER}, {"x": "y"}, "x", "a number"),
        ({**of(a=TEXT), "additionalProperties": False}, {"b": 1}, "b", "not a field"),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, "", "at most 1 fields"),
        ({"allOf": [NUMBER, {"minimum": 3}]}, 1, "", "at least 3"),
        ({"anyOf": [TEXT, NUMBER]}, [], "", "anyOf"),
        ({"oneOf": [NUMBER, {"minimum": 3}]}, 4, "", "fits 2"),
        ({"not": {"required": ["b"]}}, {"b": 1}, "", "must not have"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_where_it_stands(schema, value, where, told):
    [fault] = faults(value, schema)

    assert format_path(fault.path) == where
    assert told in fault.message


def test_defaults_are_filled_in_at_every_depth():
    schema = of(
        spec={
            **of(size={"type": "integer", "default": 3}, crew={**of(n={**TEXT, "default": "x"})}),
            "default": {},
        },
        decks={"type": "array", "items": of(no={"type": "integer", "default": 1})},
    )

    assert completed({"decks": [{}, {"no": 2}]}, schema) == {
        "spec": {"size": 3},
        "decks": [{"no": 1}, {"no": 2}],
    }
    assert completed({"spec": {"size": 5, "crew": {}}}, schema) == {
        "spec": {"size": 5, "crew": {"n": "x"}}
    }


def test_nulls_give_way_to_defaults_unless_they_may_stand():
    schema = of(a={**TEXT, "default": "x"}, b={**TEXT, "nullable": True, "default": "y"}, c=TEXT)

    given = {"a": None, "b": None, "c": None, "other": None}

    assert completed(given, schema) == {"a": "x", "b": None, "other": None}


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (of(a={**NUMBER, "minimum": "3"}), "properties.a.minimum"),
        (of(a={**NUMBER, "multipleOf": 0}), "properties.a.multipleOf"),
        ({"type": "object", "additionalProperties": 5}, "additionalProperties"),
        ({"anyOf": [{}, {"maximum": True}]}, "anyOf[1].maximum"),
    ],
)
def test_a_wrong_schema_is_told(schema, where):
    [problem] = errors(list(schema_problems(schema)))
    assert format_path(problem.path) == where


def test_a_pattern_that_cannot_be_checked_is_a_warning():
    [problem] = schema_problems(of(a={**TEXT, "pattern": r"^\pL("}))
    assert problem.warning
    assert "not checked" in problem.message


def test_a_default_must_fit_its_schema():
    schema = of(a={"type": "integer", "default": "x"}, b={"type": "integer", "default": 1})

    [problem] = default_problems(schema)

    assert format_path(problem.path) == "properties.a.default"
