"""Garbage is looked for rarely while a controller runs, and as usual afterwards."""

import gc
from collections.abc import Iterator

import pytest
from simulation import Simulation, simulated


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    """Python's own setting, whatever controllers of other tests have left."""
    left = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*left)


def test_the_process_has_its_own_setting_again_after_the_controller(
    usual: tuple[int, int, int],
) -> None:

    async def story(_: Simulation) -> tuple[int, int, int]:
        return gc.get_threshold()

    during = simulated(story)
    assert all(rare > normal for rare, normal in zip(during, usual, strict=True))
    assert gc.get_threshold() == usual
