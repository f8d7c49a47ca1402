"""The work queue: each key once, in order, one worker a key, later ones in time."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from simulation import ManualClock

from vcjob.controller.work_queue import WorkQueue


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def queue(time: Time | None = None) -> WorkQueue[str]:
    return WorkQueue(time or Time())


def drain(work: WorkQueue[str]) -> list[str]:
    taken = []
    while (key := work.take()) is not None:
        taken.append(key)
    return taken


def test_keys_come_in_the_order_in_which_they_were_added_each_once() -> None:
    work = queue()
    for key in "abacb":
        work.add(key)
    assert len(work) == 3
    assert drain(work) == ["a", "b", "c"]


def test_the_longest_wait_is_that_of_the_key_that_was_added_first_until_a_worker_has_it() -> None:
    time = Time()
    work = queue(time)
    assert work.longest_wait == 0
    work.add("a")
    time.now = 2.0
    work.add("b")
    work.add("a")
    time.now = 5.0
    assert work.longest_wait == 5
    work.take()
    assert work.longest_wait == 3
    work.take()
    assert work.longest_wait == 0


def test_a_key_that_is_worked_on_is_given_to_nobody_else_and_comes_back_at_the_end() -> None:
    work = queue()
    work.add("a")
    assert work.take() == "a"
    work.add("a")
    work.add("b")
    assert work.take() == "b"
    assert work.take() is None
    work.done("a")
    assert work.take() == "a"


def test_a_key_that_nobody_added_again_does_not_come_back() -> None:
    work = queue()
    work.add("a")
    work.take()
    work.done("a")
    assert work.take() is None
    assert len(work) == 0


def test_keys_for_later_come_when_it_is_time_the_earliest_wish_counting() -> None:
    time = Time()
    work = queue(time)
    work.add_at("a", 10.0)
    work.add_at("a", 5.0)
    work.add_at("a", 20.0)
    work.add_at("b", 7.0)
    assert work.next_due == 5.0
    assert drain(work) == []
    time.now = 5.0
    assert drain(work) == ["a"]
    assert work.next_due == 7.0
    time.now = 30.0
    assert drain(work) == ["b"]
    assert work.next_due is None


def test_what_is_due_already_comes_at_once() -> None:
    work = queue()
    work.add_at("a", 0.0)
    assert drain(work) == ["a"]


def test_a_forgotten_key_does_not_come() -> None:
    time = Time()
    work = queue(time)
    work.add("a")
    work.add_at("b", 1.0)
    for key in "ab":
        work.forget(key)
    time.now = 2.0
    assert drain(work) == []
    assert work.next_due is None


def test_workers_wake_when_there_is_work_and_the_timer_when_something_comes_earlier() -> None:
    async def story() -> None:
        clock = ManualClock(0.0)
        work: WorkQueue[str] = WorkQueue(clock.now)
        worker = asyncio.create_task(work.filled())
        timer = asyncio.create_task(work.wake(clock))
        for key, when, due in (("a", 10.0, 10.0), ("b", 20.0, 10.0), ("c", 5.0, 5.0)):
            work.add_at(key, when)
            for _ in range(10):
                await asyncio.sleep(0)
            assert clock.next_wake() == due
        assert not worker.done()
        work.add("d")
        await worker
        timer.cancel()
        await asyncio.gather(timer, return_exceptions=True)

    asyncio.run(asyncio.wait_for(story(), 10))


class SetClock(ManualClock):
    """A clock of which somebody sets the hands."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


def test_a_clock_that_is_set_back_lengthens_no_pause() -> None:
    async def story() -> None:
        clock = SetClock(10_000.0)
        work: WorkQueue[str] = WorkQueue(clock.now)
        timer = asyncio.create_task(work.wake(clock))
        for key, when in (("soon", 10_005.0), ("late", 10_900.0)):
            work.add_at(key, when)
        await asyncio.sleep(0)
        clock.ahead = -3600.0
        clock.move_to(10_060.0)  # nobody sleeps longer than a minute
        for _ in range(10):
            await asyncio.sleep(0)
        assert (drain(work), work.next_due) == (["soon", "late"], None)
        timer.cancel()
        await asyncio.gather(timer, return_exceptions=True)

    asyncio.run(asyncio.wait_for(story(), 10))


@given(st.lists(st.tuples(st.sampled_from("atd"), st.sampled_from("xyz")), max_size=60))
def test_whatever_happens_no_key_is_lost_and_none_is_had_twice_at_a_time(
    steps: list[tuple[str, str]],
) -> None:
    work = queue()
    had: set[str] = set()
    wanted: set[str] = set()
    for step, key in steps:
        if step == "a":
            work.add(key)
            wanted.add(key)
        elif step == "t" and (taken := work.take()):
            assert taken not in had
            had.add(taken)
            wanted.discard(taken)
        elif step == "d" and key in had:
            had.discard(key)
            work.done(key)
    for key in had:
        work.done(key)
    assert set(drain(work)) == wanted


def test_a_key_that_a_worker_adds_for_sooner_when_it_was_just_woken_is_not_slept_over() -> None:
    clock = ManualClock(0.0)
    work: WorkQueue[str] = WorkQueue(clock.now)
    worked: list[tuple[str, float]] = []

    async def worker() -> None:
        while True:
            while (key := work.take()) is not None:
                worked.append((key, clock.now()))
                if len(worked) < 3:
                    work.add_at(key, clock.now() + 5)
                work.done(key)
            await work.filled()

    async def story() -> None:
        work.add_at("far", 60.0)
        work.add_at("near", 5.0)
        tasks = [asyncio.create_task(worker()), asyncio.create_task(work.wake(clock))]
        for _ in range(3):
            for _ in range(10):
                await asyncio.sleep(0)
            if (due := clock.next_wake()) is not None:
                clock.move_to(due)
        for _ in range(10):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(story())
    assert worked == [("near", 5.0), ("near", 10.0), ("near", 15.0)]
