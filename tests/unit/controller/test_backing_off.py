"""How long the next try waits."""

import random

import pytest

from vcjob.controller.backing_off import pause_after


@pytest.mark.parametrize(
    ("failures", "longest_pause"),
    [(0, 1.0), (1, 1.0), (2, 2.0), (5, 16.0), (6, 30.0), (10_000, 30.0)],
)
def test_each_failure_doubles_the_pause_and_at_most_a_quarter_is_taken_off(
    failures: int, longest_pause: float
) -> None:
    jitter = random.Random(1)
    pauses = {pause_after(failures, jitter, first=1.0, longest=30.0) for _ in range(100)}
    assert len(pauses) > 1, "who failed together does not come back together"
    assert all(longest_pause * 3 / 4 <= pause <= longest_pause for pause in pauses)
