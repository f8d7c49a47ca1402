"""Merge patches: the examples of RFC 7386, and what they share with the old object."""

from typing import Any

import pytest

from vcjob.local.merge_patch import merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": True}, {"a": True}),
    ],
)
def test_examples_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    merged = merge_patch(target, patch)
    assert merged == result
    assert str(merged) == str(result)


def test_what_a_patch_leaves_alone_is_shared() -> None:
    old = {"metadata": {"labels": {"a": "b"}}, "spec": {"big": [1, 2, 3]}}
    new = merge_patch(old, {"metadata": {"labels": {"c": "d"}}})
    assert new["spec"] is old["spec"]
    assert old == {"metadata": {"labels": {"a": "b"}}, "spec": {"big": [1, 2, 3]}}


def test_a_patch_that_changes_nothing_returns_the_very_object() -> None:
    old = {"a": {"b": [1], "c": "d"}}
    assert merge_patch(old, {"a": {"b": [1], "x": None}}) is old
