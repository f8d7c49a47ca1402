"""Garbage is looked for rarely while a controller runs, and as usual afterwards."""

import gc

from simulation import Simulation, simulated


def test_the_process_has_its_own_setting_again_after_the_controller() -> None:
    before = gc.get_threshold()

    async def story(_: Simulation) -> tuple[int, int, int]:
        return gc.get_threshold()

    during = simulated(story)
    assert all(rare > usual for rare, usual in zip(during, before, strict=True))
    assert gc.get_threshold() == before
