"""Leader election: who works, and from when on, whatever the API server and the clocks do."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest
from replicas import NAME, NAMESPACE, Line, Replicas
from simulation import ManualClock

from vcjob.api.kinds import LEASE
from vcjob.api.types import Object
from vcjob.controller.clock import SystemClock
from vcjob.controller.cluster import Forbidden
from vcjob.controller.leading import Leader, Terms
from vcjob.local.store import Store

LONGEST_FAIL_OVER = 17.0
"""Lease and retry at Volcano's defaults."""


def played(story: Callable[[Replicas], Awaitable[None]]) -> None:
    async def tell() -> None:
        world = Replicas()
        try:
            await story(world)
            assert world.wrong == []
        finally:
            await world.end()

    asyncio.run(asyncio.wait_for(tell(), 30))


def test_the_first_works_and_the_others_wait() -> None:
    async def story(world: Replicas) -> None:
        first, *_ = [world.add() for _ in range(3)]
        await world.advance(300)
        assert [name for _, name in world.history] == ["replica-0"]
        assert [one.leader.leads for one in world.all] == [True, False, False]
        assert {one.leader.holder for one in world.all} == {first.name}

    played(story)


def test_the_lease_reads_as_client_go_writes_it() -> None:
    async def story(world: Replicas) -> None:
        world.add()
        await world.advance(5)
        spec = (await world.store.get(LEASE, NAMESPACE, NAME))["spec"]
        assert spec["holderIdentity"] == "replica-0"
        assert spec["leaseDurationSeconds"] == 15
        assert spec["leaseTransitions"] == 0
        for time in ("acquireTime", "renewTime"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec[time])
        assert spec["acquireTime"] < spec["renewTime"]

    played(story)


def test_another_takes_over_in_time_from_one_that_crashed() -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        for _ in range(2):
            world.add()
        await world.advance(33.3)
        await first.crash()
        assert await world.until_somebody_works() <= LONGEST_FAIL_OVER
        assert (await world.lease()).lease_transitions == 1

    played(story)


def test_another_takes_over_at_once_from_one_that_stops() -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        world.add()
        await world.advance(33.3)
        await first.stop()
        assert not first.works
        given_back = await world.lease()
        assert (given_back.holder_identity, given_back.lease_transitions) == ("", 0)
        assert await world.until_somebody_works() <= world.terms.retry_period
        assert (await world.lease()).lease_transitions == 1

    played(story)


def test_a_lease_is_given_back_though_a_renewal_is_under_way() -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        await world.advance(1.9)
        first.line.back = 1.0
        await world.advance(0.5)  # written, but not answered
        await first.stop()
        await world.advance(5)
        assert (await world.lease()).holder_identity == ""

    played(story)


def test_the_lease_is_renewed_until_the_work_has_ended() -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        world.add()
        await world.advance(5)
        first.lingers = 60.0
        await first.stop()
        await world.advance(59)
        assert world.at_work == {"replica-0"}
        await world.advance(3)
        assert world.at_work == {"replica-1"}

    played(story)


@pytest.mark.parametrize("off", [-3600.0, 3600.0, 17.0])
def test_clocks_that_differ_change_nothing(off: float) -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        world.add(off=off)
        await world.advance(120)
        assert world.at_work == {"replica-0"}
        await first.crash()
        assert await world.until_somebody_works() <= LONGEST_FAIL_OVER

    played(story)


def test_work_ends_before_the_lease_can_expire_for_others() -> None:
    """Of those who are cut off none works longer than the deadline of the renewal."""

    async def story(world: Replicas) -> None:
        first = world.add()
        world.add()
        await world.advance(20.5)
        first.line.cut = True
        await world.advance(world.terms.renew_deadline)
        assert not first.works
        assert not world.at_work, "it cannot be known yet that the first has ended"
        assert "connection refused" in first.leader.trouble
        assert await world.until_somebody_works() <= LONGEST_FAIL_OVER - 10
        first.line.cut = False
        await world.advance(30)
        assert world.at_work == {"replica-1"}
        assert first.leader.trouble == ""

    played(story)


def test_a_short_outage_costs_nothing_and_one_for_all_is_got_over() -> None:
    async def story(world: Replicas) -> None:
        for _ in range(3):
            world.add()
        await world.advance(20)
        for seconds, changes in ((7.0, 1), (40.0, 2)):
            for one in world.all:
                one.line.cut = True
            await world.advance(seconds)
            for one in world.all:
                one.line.cut = False
            await world.until_somebody_works()
            await world.advance(20)
            assert len(world.history) == changes
            assert len(world.at_work) == 1

    played(story)


def test_an_answer_that_never_comes_leaves_time_for_another_try() -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        await world.advance(3)
        first.line.back = 1_000.0
        await world.advance(4.5)
        first.line.back = 0.0
        await world.advance(60)
        assert [name for _, name in world.history] == ["replica-0"]

    played(story)


def test_a_renewal_counts_from_when_it_was_sent() -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        await world.advance(20)
        first.line.there = 4.0  # each write arrives, and each is answered, late
        await world.advance(60)
        assert first.works, "four seconds are less than the deadline"
        first.line.back = 1.5  # together they are more than what one try may take
        await world.advance(12)
        assert not first.works, "not one answer came"

    played(story)


def test_who_finds_another_as_holder_stops_at_once() -> None:
    async def story(world: Replicas) -> None:
        first = world.add()
        await world.advance(20)
        taken = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15}}
        await world.store.patch(LEASE, NAMESPACE, NAME, taken)
        await world.advance(3)
        assert not first.works
        assert first.leader.holder == "somebody"
        await world.advance(20)
        assert first.works, "somebody did not renew it"
        assert (await world.lease()).lease_transitions == 1

    played(story)


def test_a_lease_that_was_deleted_is_made_again_by_its_holder() -> None:
    async def story(world: Replicas) -> None:
        world.add()
        world.add()
        await world.advance(21)
        await world.store.delete(LEASE, NAMESPACE, NAME)
        await world.advance(60)
        assert [name for _, name in world.history] == ["replica-0"]
        assert (await world.lease()).holder_identity == "replica-0"

    played(story)


def test_the_duration_that_stands_in_the_lease_counts() -> None:
    async def story(world: Replicas) -> None:
        held = {"holderIdentity": "other", "leaseDurationSeconds": 60, "leaseTransitions": 4}
        metadata = {"namespace": NAMESPACE, "name": NAME}
        await world.store.create(LEASE, {"metadata": metadata, "spec": held})
        world.add()
        await world.advance(59)
        assert not world.at_work
        await world.advance(1.5)
        assert world.at_work == {"replica-0"}

    played(story)


def test_those_who_wait_ask_no_more_often_than_they_have_to() -> None:
    async def story(world: Replicas) -> None:
        world.add()
        second = world.add()
        await world.advance(100)
        calls = second.line.calls
        await world.advance(100)
        assert 45 <= second.line.calls - calls <= 70

    played(story)


class _Refusing(Line):
    async def get(self, *_: object) -> Object:
        raise Forbidden('leases "vcjob-operator" is forbidden: cannot get resource')


def test_what_is_wrong_can_be_read_and_passes_without_a_restart() -> None:
    async def tell() -> None:
        clock = ManualClock()
        store = Store(clock.now)
        line: Line = _Refusing(store, clock)
        leader = Leader(line, NAMESPACE, NAME, "me", clock)

        async def work() -> None:
            return

        leading = asyncio.create_task(leader.lead(work))
        await _turns()
        assert leader.trouble == (
            "the Lease vcjob-system/vcjob-operator cannot be had: "
            'leases "vcjob-operator" is forbidden: cannot get resource'
        )
        leader._cluster = Line(store, clock)
        clock.move_to(clock.now() + 2)
        await _turns()
        await asyncio.wait_for(leading, 5)
        assert leader.trouble == ""

    asyncio.run(tell())


async def _turns() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_the_work_is_the_end_of_leading(fails: bool) -> None:
    class Broken(Exception):
        pass

    async def tell() -> None:
        clock = ManualClock()
        store = Store(clock.now)

        async def work() -> None:
            if fails:
                raise Broken

        await Leader(Line(store, clock), NAMESPACE, NAME, "me", clock).lead(work)

    if fails:
        with pytest.raises(Broken):
            asyncio.run(tell())
    else:
        asyncio.run(tell())


@pytest.mark.parametrize("numbers", [(10.0, 10.0, 2.0), (15.0, 2.0, 2.0), (15.0, 10.0, 0.0)])
def test_terms_that_cannot_be_kept_are_refused(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must be longer"):
        Terms(*numbers)


class JumpingClock(SystemClock):
    """A clock of a process that stands still for ``missed`` seconds."""

    missed = 0.0

    def steady(self) -> float:
        return super().steady() + self.missed


def test_who_stood_still_may_write_nothing_before_it_has_noticed() -> None:
    async def story() -> None:
        clock, began, may = JumpingClock(), asyncio.Event(), []

        async def work() -> None:
            may.append(leader.may_write)
            clock.missed = Terms().renew_deadline
            may.append(leader.may_write)
            assert leader.leads
            began.set()
            await asyncio.Event().wait()

        leader = Leader(Store(clock.now), NAMESPACE, NAME, "a", clock)
        leading = asyncio.create_task(leader.lead(work))
        await began.wait()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        assert may == [True, False]

    asyncio.run(asyncio.wait_for(story(), 30))
