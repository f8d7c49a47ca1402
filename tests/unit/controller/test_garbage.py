"""Garbage is looked for rarely while a controller runs, and as usual afterwards."""

import gc
from collections import deque
from collections.abc import Iterator

import pytest
from simulation import Simulation, simulated

from vcjob.controller.garbage import rarely_collected


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
    assert during[0] > usual[0]
    assert gc.get_threshold() == usual


class Cycle:
    """What only the collector of garbage can take away."""

    alive = 0

    def __init__(self) -> None:
        self.itself = self
        Cycle.alive += 1

    def __del__(self) -> None:
        Cycle.alive -= 1


def test_also_what_lived_for_a_while_is_taken_away_during_it() -> None:
    live, came_and_went = 20_000, 600_000
    gc.collect()
    with rarely_collected():
        recent = deque[Cycle](maxlen=live)
        for _ in range(came_and_went):
            recent.append(Cycle())
        left = Cycle.alive
    assert left < came_and_went / 4
