"""Who decides about Jobs where Volcano's controller may be at work too."""

import asyncio
import functools

import pytest
import volcanos_leases
from volcanos_leases import Closed

from vcjob.api.kinds import LEASE
from vcjob.api.types import Object
from vcjob.controller.readiness import Readiness
from vcjob.kubernetes.beside_volcano import (
    CONTROLLER_LEASE,
    StandingBack,
    TakingOver,
    VolcanoRuns,
)
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.installing.installation import VOLCANO_NAMESPACE as NAMESPACE
from vcjob.local.store import Store

QUICK = 0.005
"""Seconds between looks."""


class Told(Readiness):
    """Readiness that can be waited for to tell something about Volcano."""

    def __init__(self) -> None:
        super().__init__()
        self._told = asyncio.Event()

    def fail(self, condition: str, sentence: str) -> None:
        super().fail(condition, sentence)
        if condition == Condition.VOLCANO:
            self._told.set()

    async def told(self) -> str:
        await self._told.wait()
        self._told.clear()
        return self.of(Condition.VOLCANO)


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


hold = functools.partial(volcanos_leases.hold, lease=CONTROLLER_LEASE)
renewing = functools.partial(volcanos_leases.renewing, lease=CONTROLLER_LEASE)


async def spec_of(store: Store) -> Object:
    spec: Object = (await store.get(LEASE, NAMESPACE, CONTROLLER_LEASE))["spec"]
    return spec


def test_without_a_lease_of_volcano_we_start() -> None:
    async def scenario() -> None:
        readiness = Readiness()
        await StandingBack(Store(Clock()), readiness, QUICK).refuse_to_start()
        assert readiness.ready

    asyncio.run(scenario())


def test_a_controller_of_volcano_that_ended_gracefully_keeps_nobody_from_starting() -> None:
    async def scenario() -> None:
        store = Store(Clock())
        await hold(store, "", 1)
        await StandingBack(store, Readiness(), QUICK).refuse_to_start()

    asyncio.run(scenario())


def test_a_controller_of_volcano_at_work_is_named_in_the_refusal() -> None:
    async def scenario() -> None:
        store = Store(Clock())
        async with renewing(store, "volcano-controllers-abc_1"):
            with pytest.raises(VolcanoRuns, match=r"volcano-controllers-abc_1.*--take-over"):
                await StandingBack(store, Readiness(), QUICK).refuse_to_start()

    asyncio.run(scenario())


def test_volcano_is_looked_for_in_the_namespace_that_it_is_said_to_be_in() -> None:
    async def scenario() -> None:
        store = Store(Clock())
        elsewhere = StandingBack(store, Readiness(), QUICK, namespace="batch")
        async with renewing(store, "controllers-x"):  # another's, in volcano-system
            await elsewhere.refuse_to_start()
        async with renewing(store, "controllers-y", namespace="batch"):
            with pytest.raises(
                VolcanoRuns, match=r"y holds the Lease batch/vc-cont.*kubectl -n batch scale"
            ):
                await elsewhere.refuse_to_start()

    asyncio.run(scenario())


def test_a_lease_is_taken_over_in_the_namespace_that_volcano_is_said_to_be_in() -> None:
    async def scenario() -> None:
        store = Store(Clock())
        await TakingOver(store, Readiness(), "a", QUICK, namespace="batch").clear()
        [lease] = (await store.list(LEASE)).items
        assert lease["metadata"]["namespace"] == "batch"

    asyncio.run(scenario())


def test_a_lease_that_nobody_renews_is_looked_at_for_as_long_as_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        store, readiness = Store(Clock()), Told()
        await hold(store, "killed", seconds=1)
        with caplog.at_level("INFO"):
            starting = asyncio.create_task(StandingBack(store, readiness, QUICK).refuse_to_start())
            assert "killed is named as holder" in await readiness.told()
            assert not readiness.ready
            await starting
        assert readiness.ready

    asyncio.run(scenario())
    assert len([one for one in caplog.messages if "killed is named as holder" in one]) == 1
    assert [message for message in caplog.messages if message.startswith("nobody renews the Lease")]


def test_a_controller_of_volcano_that_comes_later_has_the_jobs_until_it_goes() -> None:
    async def scenario() -> None:
        store, readiness = Store(Clock()), Told()
        beside = StandingBack(store, readiness, QUICK)
        await beside.clear()
        async with renewing(store, "volcano"):
            await beside.taken()
            clear = asyncio.create_task(beside.clear())
            assert "volcano) holds the Lease" in await readiness.told()
            assert not clear.done()
        await hold(store, "", 1)
        await clear
        assert readiness.ready

    asyncio.run(scenario())


def test_what_may_not_be_read_counts_as_held_and_says_which_right_is_missing() -> None:
    async def scenario() -> None:
        store, readiness = Closed(Clock()), Told()
        beside = StandingBack(store, readiness, QUICK)
        starting = asyncio.create_task(beside.refuse_to_start())
        said = await readiness.told()
        assert 'grant the verb get on leases of namespace "volcano-system"' in said
        store.closed = False
        await starting
        assert readiness.ready
        store.closed = True
        await beside.taken()

    asyncio.run(scenario())


def test_another_operator_of_ours_that_took_over_is_not_volcano() -> None:
    async def scenario() -> None:
        store = Store(Clock())
        async with renewing(store, "vcjob-operator_other"):
            await StandingBack(store, Readiness(), QUICK).refuse_to_start()

    asyncio.run(scenario())


def test_taking_over_waits_until_the_controller_of_volcano_must_have_noticed() -> None:
    async def scenario() -> None:
        store, readiness = Store(Clock()), Told()
        await hold(store, "volcano", seconds=1)
        over = TakingOver(store, readiness, "me", QUICK, duration=1)
        start = asyncio.get_running_loop().time()
        clear = asyncio.create_task(over.clear())
        assert "from volcano; waiting 1 s" in await readiness.told()
        await clear
        assert asyncio.get_running_loop().time() - start >= 1
        spec = await spec_of(store)
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("vcjob-operator_me", 4)
        assert not readiness.of(Condition.VOLCANO)

    asyncio.run(scenario())


def test_taking_a_free_lease_or_one_of_ours_needs_no_waiting() -> None:
    async def scenario() -> None:
        store = Store(Clock())
        await TakingOver(store, Readiness(), "me", QUICK, duration=600).clear()
        await hold(store, "", 1)
        await TakingOver(store, Readiness(), "me", QUICK, duration=600).clear()
        long_ago = {"spec": {"acquireTime": "2020-01-01T00:00:00.000000Z"}}
        await store.patch(LEASE, NAMESPACE, CONTROLLER_LEASE, long_ago)
        await hold(store, "vcjob-operator_other")
        await TakingOver(store, Readiness(), "me", QUICK, duration=600).clear()
        assert (await spec_of(store))["holderIdentity"] == "vcjob-operator_me"

    asyncio.run(scenario())


def test_a_replica_that_follows_one_that_just_took_over_waits_for_the_rest() -> None:
    async def scenario() -> None:
        store, readiness = Store(Clock()), Told()
        await hold(store, "volcano", seconds=600)
        first = asyncio.create_task(
            TakingOver(store, readiness, "first", QUICK, duration=600).clear()
        )
        await readiness.told()
        first.cancel()
        second = asyncio.create_task(
            TakingOver(store, readiness, "second", QUICK, duration=600).clear()
        )
        assert "from vcjob-operator_first; waiting 600 s" in await readiness.told()
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)

    asyncio.run(scenario())


def test_a_taken_lease_is_renewed_and_its_loss_noticed() -> None:
    async def scenario() -> None:
        store = Store(Clock())
        over = TakingOver(store, Readiness(), "me", QUICK)
        await over.clear()
        before = (await spec_of(store))["renewTime"]
        taken = asyncio.create_task(over.taken())
        async for event in store.watch(LEASE, str(store.version), NAMESPACE):
            assert event.object["spec"]["renewTime"] > before
            break
        assert not taken.done()
        await hold(store, "volcano")
        await taken

    asyncio.run(scenario())
