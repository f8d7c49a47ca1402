"""The patch from one status to another."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcjob.core.status import difference
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
