"""Sets of indices behave as sets, and their text says the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.core.indices import NO_INDICES, IndexSet

indices = st.frozensets(st.integers(0, 300))


@given(indices, indices)
def test_they_are_sets(one: frozenset[int], other: frozenset[int]) -> None:
    first, second = IndexSet.of(*one), IndexSet.of(*other)
    assert list(first) == sorted(one)
    assert len(first) == len(one)
    assert bool(first) is bool(one)
    assert list(first | second) == sorted(one | other)
    assert list(first & second) == sorted(one & other)
    assert list(first - second) == sorted(one - other)
    assert (first == second) is (one == other)
    assert all((index in first) is (index in one) for index in range(302))


@given(indices)
def test_the_text_is_read_back(some: frozenset[int]) -> None:
    these = IndexSet.of(*some)
    assert IndexSet.parse(str(these)) == these


@pytest.mark.parametrize(
    ("these", "text"),
    [
        (NO_INDICES, ""),
        (IndexSet.of(0), "0"),
        (IndexSet.of(3, 0, 1, 2, 7), "0-3,7"),
        (IndexSet.below(10_000), "0-9999"),
        (IndexSet.below(4) - IndexSet.of(1), "0,2-3"),
    ],
)
def test_the_text_is_ranges(these: IndexSet, text: str) -> None:
    assert str(these) == text


@pytest.mark.parametrize("text", ["x", "-", "3-1", "1,,2", "-1", "0-99999999999"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|no range"):
        IndexSet.parse(text)
