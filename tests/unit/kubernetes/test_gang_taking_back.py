"""Gangs that lost their room: taken back whole, one at a time, and started again later."""

from typing import Any

from gang_world import GRACE, Refusing, World, play, task

from vcjob.api.kinds import EVENT, NODE, POD, POD_GROUP
from vcjob.api.names import OUT_OF_SYNC
from vcjob.controller.cluster import Cluster, Unavailable
from vcjob.local.store import Store


def test_a_gang_that_lost_its_room_before_its_pods_were_there_waits_anew_and_deletes_nothing() -> (
    None
):
    async def scenario(world: World) -> None:
        await world.nodes("2", "2")
        await world.job("lc", task("worker", 4), pods=False)
        await world.foreign("thief", "node-1", "1")
        await world.pods("lc")
        assert await world.let_go() == {"thief"}
        assert await world.phase("lc") == "Pending"
        assert (await world.told("lc"))[0] == "NotEnoughResources"
        await world.turns("Succeeded", "thief")
        assert len(await world.let_go()) == 5
        assert await world.bind() == 4
        assert await world.phase("lc") == "Running"

    play(scenario)


def test_a_gang_is_taken_back_when_its_pods_find_no_nodes_and_starts_when_there_is_room() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2", "2")
        await world.job("lc", task("worker", 4))
        await world.foreign("thief", "node-1", "1")
        assert await world.bind() == 3
        await world.turns("Running", "lc-worker-0")
        await world.advance(GRACE - 1)
        assert await world.phase("lc") == "Inqueue"
        before = await world.all_pods()

        await world.advance(1)
        assert await world.phase("lc") == "Pending"
        reason, message = await world.told("lc")
        assert reason == "TakenBack"
        assert "1 of the 4 pods" in message
        assert "Insufficient cpu" in message
        [event] = (await world.store.list(EVENT)).items
        assert (event["reason"], event["message"]) == ("TakenBack", message)
        for name, pod in (await world.all_pods()).items():
            leaving = "deletionTimestamp" in pod["metadata"]
            marked = (pod["metadata"].get("annotations") or {}).get(OUT_OF_SYNC) == "true"
            assert leaving == marked == (name != "thief")

        await world.turns("Succeeded", "thief")
        assert await world.phase("lc") == "Pending", "old pods are still there"
        await world.finish_leaving()
        assert await world.phase("lc") == "Inqueue"
        await world.pods("lc")
        after = await world.all_pods()
        assert before["lc-worker-0"]["metadata"]["uid"] != after["lc-worker-0"]["metadata"]["uid"]
        assert await world.bind() == 4
        assert await world.phase("lc") == "Running"

    play(scenario)


def test_a_gang_that_runs_is_never_taken_back() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.job("lc", task("worker", 4), minAvailable=2)
        assert await world.let_go() == {"lc-worker-0", "lc-worker-1"}
        await world.bind()
        assert await world.phase("lc") == "Running"
        assert len(await world.let_go()) == 4
        await world.foreign("thief", "node-0", "2")
        await world.bind()
        await world.advance(10 * GRACE)
        assert len(await world.all_pods()) == 5
        assert await world.phase("lc") == "Running"
        await world.turns("Succeeded", "thief")
        assert await world.bind() == 2

    play(scenario)


def test_each_pod_that_is_bound_gives_a_gang_new_time() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2", "1")
        await world.job("lc", task("worker", 3))
        await world.foreign("thief", "node-0", "2")
        assert await world.bind() == 1
        await world.advance(GRACE / 2)
        await world.turns("Succeeded", "thief")
        await world.foreign("other", "node-0", "1")
        assert await world.bind() == 1
        await world.advance(GRACE - 1)
        assert await world.phase("lc") == "Inqueue"
        await world.advance(1)
        assert await world.phase("lc") == "Pending"

    play(scenario)


async def two_that_hold_half_each(world: World) -> None:
    """The gangs ``first`` and ``second``, of which neither gets on."""
    await world.nodes("2", "2")
    await world.job("first", task("worker", 2), pods=False)
    await world.advance(1)
    await world.job("second", task("worker", 2), pods=False)
    await world.pods("first")
    await world.pods("second")
    await world.store.patch(NODE, "", "node-1", {"spec": {"unschedulable": True}})
    for name in ("first-worker-1", "second-worker-1"):  # each gets one of the two places
        await world.store.patch(POD, "default", name, {"spec": {"nodeName": "node-0"}})
    await world.settle()
    await world.bind()


def test_of_two_gangs_that_hold_half_each_only_one_is_taken_back() -> None:
    async def scenario(world: World) -> None:
        await two_that_hold_half_each(world)
        await world.advance(GRACE)
        assert (await world.phase("first"), await world.phase("second")) == ("Inqueue", "Pending")
        await world.finish_leaving()
        assert await world.bind() == 1
        await world.advance(2 * GRACE)
        assert (await world.phase("first"), await world.phase("second")) == ("Running", "Pending")

    play(scenario)


def test_a_gang_whose_pods_cannot_be_deleted_keeps_no_other_for_longer_than_its_time() -> None:
    async def scenario(world: World) -> None:
        await two_that_hold_half_each(world)
        await world.advance(2 * GRACE - 1)
        assert (await world.phase("first"), await world.phase("second")) == ("Inqueue", "Pending")
        await world.advance(1)
        assert (await world.phase("first"), await world.phase("second")) == ("Pending", "Pending")

    play(scenario)


def test_a_gang_that_may_not_be_taken_back_leaves_the_next_its_turn() -> None:
    made: list[Refusing] = []

    def wrap(store: Store) -> Cluster:
        made.append(Refusing(store))
        return made[0]

    async def scenario(world: World) -> None:
        [refusing] = made
        await two_that_hold_half_each(world)
        refusing.kind, refusing.prefix = POD_GROUP, "second-"
        await world.advance(GRACE)
        assert refusing.refused
        assert (await world.phase("first"), await world.phase("second")) == ("Pending", "Inqueue")
        await world.finish_leaving()
        assert await world.bind() == 1
        assert await world.phase("second") == "Inqueue", "that cannot be written"
        refusing.kind = None
        await world.advance(60)
        assert await world.phase("second") == "Running"

    play(scenario, wrap)


def test_a_gang_whose_pods_find_no_nodes_again_and_again_pauses_ever_longer() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.job("lc", task("worker", 2))
        for round_number in range(3):
            assert await world.phase("lc") == "Inqueue"
            await world.pods("lc")
            for index in (0, 1):  # for a reason that nobody but Kubernetes' scheduler knows
                condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                             "message": "no volume in this zone"}  # fmt: skip
                told = {"status": {"conditions": [condition]}}
                name = f"lc-worker-{index}"
                await world.store.patch(POD, "default", name, told, subresource="status")
            await world.settle()
            await world.advance(GRACE)
            await world.finish_leaving()
            if round_number:
                reason, message = await world.told("lc")
                assert reason == "TakenBackAgain"
                assert f"{round_number + 1} times" in message
                await world.advance(GRACE * 2 ** (round_number - 1) - 1)
                assert await world.phase("lc") == "Pending"
                await world.advance(1)

    play(scenario)


def test_a_scheduler_that_comes_after_a_crash_goes_on_deleting_what_was_taken_back() -> None:
    failing = {"now": False}

    class Crashing:
        def __init__(self, store: Store) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            if name == "delete" and failing["now"]:
                return self._fail
            return getattr(self._store, name)

        async def _fail(self, *_: Any, **__: Any) -> None:
            raise Unavailable("the server is away")

    async def scenario(world: World) -> None:
        await world.nodes("2", "2")
        await world.job("lc", task("worker", 4))
        await world.foreign("thief", "node-1", "1")
        await world.bind()
        failing["now"] = True
        await world.advance(GRACE)
        assert await world.phase("lc") == "Pending"
        await world.stop()
        failing["now"] = False
        await world.start()
        await world.finish_leaving()
        assert set(await world.all_pods()) == {"thief"}

    play(scenario, wrap=lambda store: Crashing(store))  # type: ignore[arg-type,return-value]


def test_a_gang_that_cannot_be_taken_back_is_tried_again_ever_more_seldom_until_it_is() -> None:
    made: list[Refusing] = []

    def wrap(store: Store) -> Cluster:
        made.append(Refusing(store))
        return made[0]

    async def scenario(world: World) -> None:
        [refusing] = made
        await world.nodes("2")
        await world.job("lc", task("worker", 2))
        await world.foreign("thief", "node-0", "1")
        await world.bind()
        refusing.kind = POD_GROUP
        await world.advance(GRACE + 60)
        assert 0 < refusing.refused < 10
        refusing.kind = None
        await world.advance(60)
        assert await world.phase("lc") == "Pending"

    play(scenario, wrap)
