"""Many calls, some at a time."""

import asyncio

import pytest

from vcjob.controller.parallel import for_each


@pytest.mark.parametrize(("count", "at_once", "most"), [(10, 3, 3), (2, 5, 2), (0, 3, 0)])
def test_all_are_called_and_no_more_at_once_than_allowed(
    count: int, at_once: int, most: int
) -> None:
    called: list[int] = []
    under_way = peak = 0

    async def call(item: int) -> None:
        nonlocal under_way, peak
        under_way += 1
        peak = max(peak, under_way)
        await asyncio.sleep(0)
        called.append(item)
        under_way -= 1

    assert asyncio.run(for_each(range(count), call, at_once=at_once)) == []
    assert sorted(called) == list(range(count))
    assert peak == most


def test_a_call_that_fails_keeps_no_other_from_being_made() -> None:
    called: list[int] = []

    async def call(item: int) -> None:
        called.append(item)
        if item % 2:
            raise ValueError(item)

    failures = asyncio.run(for_each(range(5), call, at_once=2))
    assert sorted(called) == [0, 1, 2, 3, 4]
    assert sorted(str(error) for error in failures) == ["1", "3"]
