"""JSON patches do what RFC 6902 says, or are refused and change nothing."""

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.apiserver.json_patch import apply_json_patch
from vcjob.local.apiserver.status import Refused

# The examples of RFC 6902, appendix A.
EXAMPLES = [
    ({"foo": "bar"}, [("add", "/baz", "qux")], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [("add", "/foo/1", "qux")], {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [("remove", "/baz")], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [("remove", "/foo/1")], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [("replace", "/baz", "boo")], {"baz": "boo"}),
    ({"a": {"b": 1}, "c": {}}, [("move", "/c/d", "/a/b")], {"a": {}, "c": {"d": 1}}),
    ({"foo": [1, 2, 3, 4]}, [("move", "/foo/3", "/foo/1")], {"foo": [1, 3, 4, 2]}),
    ({"foo": ["a", 2]}, [("test", "/foo/1", 2)], {"foo": ["a", 2]}),
    ({"foo": "bar"}, [("add", "/child", {"x": {}})], {"foo": "bar", "child": {"x": {}}}),
    ({"/": 9, "~1": 10}, [("test", "/~01", 10)], {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, [("add", "/foo/-", ["abc"])], {"foo": ["bar", ["abc"]]}),
    ({"a": [1]}, [("copy", "/b", "/a")], {"a": [1], "b": [1]}),
    ({"a": 1}, [("replace", "", {"b": 2})], {"b": 2}),
]
REFUSED = [
    ({"foo": "bar"}, [("add", "/baz/bat", "qux")]),
    ({"foo": "bar"}, [("test", "/foo", "baz")]),
    ({"a": 1}, [("test", "/a", None)]),
    ({"a": [1]}, [("add", "/a/2", 2)]),
    ({"a": [1]}, [("replace", "/a/-", 2)]),
    ({"a": [1]}, [("remove", "/a/01")]),
    ({"a": [1]}, [("remove", "/a/-1")]),
    ({"a": 1}, [("remove", "/b")]),
    ({"a": 1}, [("remove", "")]),
    ({"a": 1}, [("replace", "/b", 1)]),
    ({"a": {"b": 1}}, [("move", "/a/b/c", "/a")]),
    ({"a": 1}, [("frobnicate", "/a")]),
    ({"a": 1}, [("add", "a", 1)]),
]


def operations(short):
    for op, path, *rest in short:
        field = "from" if op in ("move", "copy") else "value"
        yield {"op": op, "path": path, **({field: rest[0]} if rest else {})}


@pytest.mark.parametrize(("before", "patch", "after"), EXAMPLES)
def test_a_patch_is_carried_out_and_the_old_object_stays(before, patch, after):
    kept = copy.deepcopy(before)

    assert apply_json_patch(before, list(operations(patch))) == after
    assert before == kept


@pytest.mark.parametrize(("before", "patch"), REFUSED)
def test_a_patch_that_cannot_be_carried_out_is_refused(before, patch):
    with pytest.raises(Refused) as refused:
        apply_json_patch(before, list(operations(patch)))
    assert refused.value.code in (400, 422)


def test_what_a_patch_leaves_alone_is_shared():
    before = {"spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Running"}}

    after = apply_json_patch(before, [{"op": "replace", "path": "/status/phase", "value": "x"}])

    assert after["spec"] is before["spec"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(JSON, JSON)
def test_whatever_is_sent_as_a_patch_is_carried_out_or_refused(target, patch):
    with contextlib.suppress(Refused):
        apply_json_patch(target, patch)


@given(
    JSON,
    st.lists(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
                "path": st.text("/ab01-", max_size=5),
            },
            optional={"value": JSON, "from": st.text("/ab01-", max_size=5)},
        ),
        max_size=3,
    ),
)
def test_no_sequence_of_operations_changes_the_old_object(target, patch):
    kept = copy.deepcopy(target)
    with contextlib.suppress(Refused):
        apply_json_patch(target, patch)
    assert target == kept
