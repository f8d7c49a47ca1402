"""Rate, concurrency and fairness of writes."""

import asyncio
from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_time import play

from vcjob.kubernetes.pacing import Bucket, Limits, Pace, Turns

KEYS = st.sampled_from("abcd")


@given(st.lists(st.one_of(KEYS, st.none()), max_size=60))
def test_of_one_key_first_come_is_first_served_and_nothing_is_lost(steps: list[str | None]) -> None:
    """A key adds an item, None takes one."""
    turns: Turns[str, tuple[str, int]] = Turns()
    waiting: dict[str, deque[int]] = {}
    for number, key in enumerate(steps):
        if key is not None:
            turns.add(key, (key, number))
            waiting.setdefault(key, deque()).append(number)
        elif turns:
            taken, item = turns.take()
            assert item == waiting[taken].popleft()
    assert bool(turns) == any(waiting.values())


@given(st.dictionaries(KEYS, st.integers(1, 30), min_size=1), st.integers(0, 100))
def test_whoever_comes_waits_for_one_of_each_other_key(held: dict[str, int], before: int) -> None:
    turns: Turns[str, str] = Turns()
    for key, count in held.items():
        for _ in range(count):
            turns.add(key, key)
    for _ in range(min(before, sum(held.values()) - 1)):
        turns.take()
    turns.add("new", "new")
    ahead: Counter[str] = Counter()
    while (taken := turns.take()) != "new":
        ahead[taken] += 1
    assert set(ahead.values()) <= {1}


@given(
    st.floats(0.5, 1000),
    st.integers(1, 50),
    st.lists(st.floats(0, 3), min_size=1, max_size=80),
)
def test_in_no_time_more_tokens_are_taken_than_burst_and_rate_allow(
    rate: float, burst: int, pauses: list[float]
) -> None:
    bucket = Bucket(rate, burst, 0.0)
    now, taken = 0.0, [0.0]
    for pause in pauses:
        now += pause
        now += bucket.wait(now)
        assert bucket.wait(now) == 0.0, "there is one after the wait that it names"
        bucket.take()
        taken.append(now)
    for first in range(1, len(taken)):
        for last in range(first, len(taken)):
            allowed = burst + rate * (taken[last] - taken[first])
            assert last - first + 1 <= allowed + 0.01


def test_without_a_rate_nobody_waits() -> None:
    bucket = Bucket(None, 1, 0.0)
    for _ in range(1000):
        assert bucket.wait(0.0) == 0.0
        bucket.take()


class Writes:
    """Writes of a second each, and what came of them."""

    def __init__(self, limits: Limits) -> None:
        self.pace = Pace(limits)
        self.order: list[str] = []
        self.under_way = 0
        self.most = 0
        self.begun: list[float] = []

    async def write(self, key: str, *, last: bool = False, seconds: float = 1.0) -> None:
        async with self.pace.turn(key, last=last):
            self.order.append(key)
            self.begun.append(asyncio.get_running_loop().time())
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(seconds)
            self.under_way -= 1


@given(st.integers(1, 5), st.lists(KEYS, min_size=1, max_size=25))
def test_as_many_are_under_way_as_may_be(at_once: int, keys: list[str]) -> None:
    async def story() -> None:
        writes = Writes(Limits(at_once=at_once))
        await asyncio.gather(*(writes.write(key) for key in keys))
        assert sorted(writes.order) == sorted(keys)
        assert writes.most == min(at_once, len(keys))
        rounds = -(-len(keys) // at_once)
        assert asyncio.get_running_loop().time() == pytest.approx(rounds)

    play(story())


def test_a_small_job_waits_for_one_write_of_a_huge_one() -> None:
    async def story() -> None:
        writes = Writes(Limits(at_once=1))
        async with asyncio.TaskGroup() as group:
            for _ in range(10_000):
                group.create_task(writes.write("huge", seconds=0))
            await asyncio.sleep(0)
            for _ in range(3):
                group.create_task(writes.write("small", seconds=0))
        places = [place for place, key in enumerate(writes.order) if key == "small"]
        assert places[1] - places[0] == places[2] - places[1] == 2
        assert places[0] <= 5

    play(story())


def test_the_rate_counts_from_when_writes_begin() -> None:
    async def story() -> None:
        writes = Writes(Limits(rate=10, burst=5, at_once=100))
        await asyncio.gather(*(writes.write("a", seconds=0.01) for _ in range(25)))
        assert writes.begun[:5] == [0] * 5
        gaps = [
            after - before
            for before, after in zip(writes.begun[4:], writes.begun[5:], strict=False)
        ]
        assert gaps == pytest.approx([0.1] * 20)

    play(story())


def test_the_last_lane_goes_when_nobody_else_waits_or_many_went() -> None:
    async def story() -> None:
        writes = Writes(Limits(at_once=1))
        async with asyncio.TaskGroup() as group:
            group.create_task(writes.write("first"))
            await asyncio.sleep(0)
            group.create_task(writes.write("event", last=True))
            group.create_task(writes.write("event", last=True))
            for _ in range(10):
                group.create_task(writes.write("pod"))
        assert writes.order == ["first", *["pod"] * 7, "event", *["pod"] * 3, "event"]

    play(story())


def test_who_gives_up_waiting_or_working_makes_room() -> None:
    async def story() -> None:
        writes = Writes(Limits(at_once=1))
        working = asyncio.ensure_future(writes.write("a", seconds=1000))
        waiting = asyncio.ensure_future(writes.write("b"))
        third = asyncio.ensure_future(writes.write("c"))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(1)
        working.cancel()
        await third
        assert writes.order == ["a", "c"]
        # Cancelled in the moment in which the turn is given.
        holding = asyncio.ensure_future(writes.write("d"))
        await asyncio.sleep(0)
        unlucky = asyncio.ensure_future(writes.write("e"))
        holding.add_done_callback(lambda _: unlucky.cancel())
        await holding
        await asyncio.wait_for(writes.write("f"), 10)
        assert writes.order[-1] == "f"

    play(story())
