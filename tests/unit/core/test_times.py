"""Durations as tables of Kubernetes show them."""

import pytest

from vcjob.core.times import short_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "<invalid>"), (-0.5, "0s"), (0, "0s"), (45.9, "45s"), (119, "119s"), (120, "2m"),
     (200, "3m20s"), (600, "10m"), (3600, "60m"), (7500, "125m"), (4 * 3600 + 60, "4h1m"),
     (8 * 3600 + 60, "8h"), (47 * 3600, "47h"), (50 * 3600, "2d2h"), (72 * 3600, "3d"),
     (9 * 86400, "9d"), (800 * 86400, "2y70d"), (9 * 365 * 86400, "9y")],
)  # fmt: skip
def test_a_duration_has_two_units_at_most(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text
