"""The patch from one status to another, and what kind of patch it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.names import STATE_KEY
from vcjob.core.status import difference, only_informs
from vcjob.local.merge_patch import merge_patch

values = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(objects, objects)
def test_the_difference_as_a_merge_patch_makes_one_into_the_other(old: Any, new: Any) -> None:
    patch = difference(old, new)
    if patch is None:
        assert old == new
    else:
        assert merge_patch(old, patch) == new


_STATE = {"v": 1, "l": {"w": "0-2"}, "g": "u"}


def _marks(**changed: Any) -> dict[str, Any]:
    return {"controlledResources": {STATE_KEY: json.dumps({**_STATE, **changed})}}


@pytest.mark.parametrize(
    ("patch", "informs"),
    [
        ({"running": 2, "pending": None}, True),
        ({"taskStatusCount": {"w": {"phase": {"Running": 2}}}}, True),
        (_marks(l={"w": "0"}, d={"w": "1"}), True),
        (_marks(g="other"), False),
        (_marks(t=[{"t": "w", "i": "0", "r": 1}]), False),
        ({"controlledResources": {STATE_KEY: None}}, False),
        ({"controlledResources": {"plugin-svc": "svc"}}, True),
        ({"running": 2, "state": {"phase": "Running"}}, False),
        ({"state": {"reason": "x", "message": None}}, True),
        ({"state": {"reason": "x", "phase": "Running"}}, False),
        ({"state": {"reason": "x"}, "version": 1}, False),
        ({"version": 1}, False),
        ({"retryCount": 1}, False),
        ({"minAvailable": 1}, False),
        ({"runningDuration": None}, True),
        ({"conditions": []}, False),
    ],
)
def test_what_only_informs_is_told_from_what_decides(patch: dict[str, Any], informs: bool) -> None:
    assert only_informs(_marks(), patch) is informs
