"""What fails is tried again ever more seldom, told once, and hinders nothing else."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from simulation import ManualClock

from vcjob.api.types import Key
from vcjob.controller.cluster import Forbidden, NotFound, Unavailable
from vcjob.kubernetes.gang_attempts import LONGEST_PAUSE_SECONDS, Attempts

KEY, OTHER = ("x", "lc"), ("x", "other")


class Doing:
    """Something that fails as told; ``tried`` says when."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.error: Exception | None = Forbidden("no right")
        self.tried: list[float] = []
        self.refused: list[str] = []

    async def note(self, key: Key, why: str) -> None:
        self.refused.append(f"{key[1]}: {why}")

    async def __call__(self) -> None:
        self.tried.append(self.clock.now())
        if self.error:
            raise self.error


def play(scenario: Callable[[ManualClock, Attempts, Doing], Coroutine[Any, Any, None]]) -> None:
    clock = ManualClock()
    doing = Doing(clock)
    asyncio.run(scenario(clock, Attempts(clock, doing.note), doing))


def test_pauses_grow_up_to_a_minute_and_the_same_failure_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(clock: ManualClock, attempts: Attempts, doing: Doing) -> None:
        for _ in range(9):
            await attempts.make(KEY, "show", doing)
            await attempts.make(KEY, "show", doing)  # it failed a moment ago
            due = attempts.next_due()
            assert due is not None
            assert attempts.due(due - 0.01, {KEY}) == set()
            clock.move_to(due)
            assert attempts.due(due, {KEY}) == {KEY}
        times = doing.tried
        pauses = [after - before for before, after in pairwise(times)]
        assert 0.75 <= pauses[0] <= 1
        assert 0.75 * LONGEST_PAUSE_SECONDS <= pauses[-1] <= LONGEST_PAUSE_SECONDS
        assert caplog.messages == ["gang x/lc: no right"]
        doing.error = Forbidden("another right")
        await attempts.make(KEY, "show", doing)
        assert caplog.messages[1:] == ["gang x/lc: another right"]
        assert doing.refused == ["lc: no right", "lc: another right"]

    play(scenario)


def test_other_things_and_other_gangs_are_not_put_off_and_success_makes_all_good() -> None:
    async def scenario(clock: ManualClock, attempts: Attempts, doing: Doing) -> None:
        for key, what in ((KEY, "show"), (KEY, "let go"), (OTHER, "show")):
            await attempts.make(key, what, doing)
        assert len(doing.tried) == len(doing.refused) == 3
        assert attempts.due(clock.now() + 60, {KEY}) == {KEY}, "the other one is no more"
        for error in (None, NotFound("gone"), Forbidden("no right")):
            doing.error = error
            await attempts.make(KEY, "show", doing)
        doing.error = Unavailable("nothing answers")
        await attempts.make(OTHER, "show", doing)
        assert len(doing.refused) == 4, "an outage is nothing that was refused"
        due = attempts.next_due()
        assert due is not None
        assert due - clock.now() <= 1, "it counts from one again"

    play(scenario)
