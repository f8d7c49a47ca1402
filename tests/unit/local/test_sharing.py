"""Equal parts kept once, and nothing ever taken for equal that is not."""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.sharing import Sharing, reuse

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.just(2**70)
    | st.sampled_from([0.0, 1.0, "", "a", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


def text(value: Any) -> str:
    """JSON keeps 1, 1.0 and true apart, which == does not."""
    return json.dumps(value, sort_keys=True)


@given(old=json_values, new=json_values)
def test_reuse_gives_the_new_value_and_changes_neither(old: Any, new: Any) -> None:
    before = text(old), text(new)
    assert text(reuse(old, new)) == text(new)
    assert (text(old), text(new)) == before


@given(value=json_values)
def test_reuse_gives_the_old_one_where_nothing_differs(value: Any) -> None:
    assert reuse(value, copy.deepcopy(value)) is value


@given(values=st.lists(json_values, max_size=8), most=st.integers(1, 20))
def test_sharing_gives_equal_values_whatever_it_has_forgotten(values: list[Any], most: int) -> None:
    sharing = Sharing(most)
    shared = [sharing.share(copy.deepcopy(value)) for value in values]
    assert [text(value) for value in shared] == [text(value) for value in values]


def test_equal_parts_are_one() -> None:
    sharing = Sharing()
    spec = {"containers": [{"image": "i", "env": [], "ports": [{"containerPort": 2222}]}]}
    pods = [
        sharing.share({"name": f"p{number}", "spec": copy.deepcopy(spec)}) for number in range(3)
    ]
    assert pods[0]["spec"] is pods[1]["spec"] is pods[2]["spec"]
    assert sharing.share(copy.deepcopy(pods[0])) is pods[0]
