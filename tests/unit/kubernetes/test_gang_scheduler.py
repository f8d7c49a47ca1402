"""Gangs on a cluster without Volcano's scheduler, on the real store: whole, in order, told why."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from fake_kube_scheduler import add_node
from gang_world import GRACE, Refusing, World, play, task

from vcjob.api.kinds import EVENT, JOB, NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster
from vcjob.core.scheduling.gating import GATE, gated
from vcjob.local.store import Store


def test_a_gang_is_admitted_its_pods_are_let_go_when_all_are_there_then_it_runs() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2", "2")
        await world.job("lc", task("worker", 3), pods=False)
        assert await world.told("lc") == (
            "Fits", f"{(await world.group('lc'))['metadata']['name']} may start: there is room for "
            "all that it needs to start")  # fmt: skip
        pods = list(world.blueprints["lc"].pods())
        for pod in pods[:2]:
            await world.store.create(POD, gated(pod))
        await world.settle()
        assert await world.let_go() == set()
        await world.pods("lc")
        assert await world.let_go() == {"lc-worker-0", "lc-worker-1", "lc-worker-2"}
        assert await world.phase("lc") == "Inqueue"
        assert await world.bind() == 3
        assert await world.phase("lc") == "Running"

    play(scenario)


def test_only_our_gate_is_lifted_and_pods_with_others_wait_for_those_who_set_them() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        gates = [{"name": "example.com/quota"}]
        await world.job("lc", task("worker", 2, schedulingGates=gates))
        assert await world.let_go() == set()
        for index in (0, 1):
            pod = (await world.all_pods())[f"lc-worker-{index}"]
            assert pod["spec"]["schedulingGates"] == [*gates, {"name": GATE}]
            without = {"spec": {"schedulingGates": [{"name": GATE}]}}
            await world.store.patch(POD, "default", f"lc-worker-{index}", without)
            await world.settle()
        assert await world.let_go() == {"lc-worker-0", "lc-worker-1"}

    play(scenario)


@pytest.mark.parametrize(
    ("cpus", "spec", "replicas", "reason", "parts"),
    [
        (("1", "1", "1"), {}, 2, "ExceedsCluster",
         ("needs room for 2 pods that request cpu 2 each", "has room for none of them")),
        (("2", "1"), {}, 2, "ExceedsCluster", ("has room for 1 of them even if nothing else ran",)),
        (("8",), {"unschedulable": True}, 1, "ExceedsCluster",
         ("a pod that requests cpu 2", "nodes: 1, of which 1 cordoned")),
        (("8",), {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}, 1,
         "ExceedsCluster", ("1 tainted gpu=yes:NoSchedule",)),
        ((), {}, 1, "ExceedsCluster", ("it has no nodes",)),
    ],
)  # fmt: skip
def test_what_no_node_takes_is_told_with_numbers_and_reasons(
    cpus: tuple[str, ...], spec: Mapping[str, Any], replicas: int, reason: str,
    parts: tuple[str, ...],
) -> None:  # fmt: skip
    async def scenario(world: World) -> None:
        await world.nodes(*cpus, **spec)
        await world.job("lc", task("worker", replicas, "2"))
        assert await world.phase("lc") == "Pending"
        told, message = await world.told("lc")
        assert told == reason
        for part in parts:
            assert part in message

    play(scenario)


def test_a_gang_waits_for_the_pods_of_others_and_starts_when_they_end() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4", "4")
        await world.foreign("web", "node-0", "3")
        await world.job("lc", task("worker", 2, "3"))
        reason, message = await world.told("lc")
        assert reason == "NotEnoughResources"
        assert "has room for 1 of them now" in message
        await world.turns("Succeeded", "web")
        assert await world.phase("lc") == "Inqueue"

    play(scenario)


@pytest.mark.parametrize("how", ["added", "uncordoned", "ready again"])
def test_a_node_that_comes_lets_a_gang_start(how: str) -> None:
    async def scenario(world: World) -> None:
        await world.nodes("1", unschedulable=how == "uncordoned")
        if how == "ready again":
            lost = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
            await world.store.patch(NODE, "", "node-0", lost, subresource="status")
        await world.job("lc", task("worker", 1, "2" if how == "added" else "1"))
        assert await world.phase("lc") == "Pending"
        if how == "added":
            await add_node(world.store, "big", "2")
        elif how == "uncordoned":
            await world.store.patch(NODE, "", "node-0", {"spec": {"unschedulable": None}})
        else:
            found = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await world.store.patch(NODE, "", "node-0", found, subresource="status")
        await world.settle()
        assert await world.phase("lc") == "Inqueue"

    play(scenario)


def test_room_is_held_from_admission_until_the_pods_are_bound() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2", "2")
        await world.job("first", task("worker", 3), pods=False)
        await world.job("second", task("worker", 2))
        assert await world.phase("second") == "Pending"
        await world.pods("first")
        assert await world.phase("second") == "Pending"
        await world.bind()
        assert await world.phase("first") == "Running"
        assert await world.phase("second") == "Pending"
        await world.job("small", task("worker", 1))
        assert await world.phase("small") == "Inqueue"

    play(scenario)


def test_queues_bound_and_priorities_order_as_on_one_machine() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.store.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 10})
        await world.queue("team", capability={"cpu": "2"})
        await world.job("much", task("worker", 3), queue="team")
        assert (await world.told("much"))[0] == "ExceedsQueue"
        await world.job("none", task("worker", 1), queue="nowhere")
        assert (await world.told("none"))[0] == "QueueNotFound"
        await world.foreign("web", "node-0", "4")
        await world.job("low", task("worker", 4))
        await world.job("high", task("worker", 4), priorityClassName="high")
        await world.turns("Failed", "web")
        assert (await world.phase("low"), await world.phase("high")) == ("Pending", "Inqueue")

    play(scenario)


def test_gangs_that_fit_in_one_order_only_are_not_admitted_and_taken_back_for_ever() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("3", "2", "1")
        nodes = ("node-0", "node-1", "node-2", "node-0", "node-1", "node-0")
        for number, node in enumerate(nodes):
            await world.foreign(f"other-{number}", node, "1")
        for number, (replicas, cpus) in enumerate(((1, "1"), (1, "1"), (2, "2"), (2, "2"))):
            await world.advance(1)  # the first one is the oldest
            job = task("worker", replicas, cpus, least=1)
            await world.job(f"job{number}", job, pods=False, minAvailable=1)
        for number in range(len(nodes)):
            await world.turns("Succeeded", f"other-{number}")  # fails if it does not come to rest
        phases = [await world.phase(f"job{number}") for number in range(4)]
        assert phases == ["Inqueue"] * 3 + ["Pending"]

    play(scenario)


def test_a_new_pod_group_of_a_job_that_runs_takes_nothing_away() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.job("lc", task("worker", 4))
        await world.bind()
        group = await world.group("lc")
        await world.store.delete(POD_GROUP, "default", group["metadata"]["name"])
        await world.settle()
        await world.store.create(POD_GROUP, world.blueprints["lc"].pod_group())
        await world.settle()
        assert await world.phase("lc") == "Running"
        assert len(await world.all_pods()) == 4

    play(scenario)


def test_pods_made_anew_for_a_gang_that_runs_are_let_go_at_once() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.job("lc", task("worker", 3))
        await world.bind()
        await world.store.delete(POD, "default", "lc-worker-1", grace_period_seconds=0)
        await world.settle()
        await world.pods("lc")
        assert "lc-worker-1" in await world.let_go()
        assert await world.bind() == 1

    play(scenario)


def test_a_new_generation_does_not_start_on_the_count_of_the_old_one() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.job("lc", task("worker", 2))
        await world.bind()
        for index in (0, 1):
            await world.store.delete(POD, "default", f"lc-worker-{index}")
        group = await world.group("lc")
        await world.store.delete(POD_GROUP, "default", group["metadata"]["name"])
        await world.settle()
        await world.store.create(POD_GROUP, world.blueprints["lc"].pod_group())
        await world.settle()
        assert await world.phase("lc") == "Inqueue"
        await world.finish_leaving()
        await world.store.create(POD, gated(next(iter(world.blueprints["lc"].pods()))))
        await world.settle()
        assert await world.let_go() == set()

    play(scenario)


def test_without_a_minimum_every_pod_starts_as_soon_as_there_is_room_for_it() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("1")
        await world.job("lc", task("worker", 3), minAvailable=0)
        for index in range(3):
            assert await world.let_go() == {f"lc-worker-{number}" for number in range(index + 1)}
            assert await world.bind() == 1
            await world.turns("Succeeded", f"lc-worker-{index}")
        assert len(await world.all_pods()) == 3

    play(scenario)


def test_the_minimum_is_made_of_the_tasks_minimums_and_large_pods_go_first() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4", "4")
        await world.job(
            "lc", task("worker", 6, least=2), task("ps", 1, "4", least=1), minAvailable=3
        )
        assert await world.let_go() == {"lc-ps-0", "lc-worker-0", "lc-worker-1"}
        pods = await world.all_pods()
        versions = {name: int(pods[name]["metadata"]["resourceVersion"])
                    for name in await world.let_go()}  # fmt: skip
        assert min(versions, key=lambda name: versions[name]) == "lc-ps-0"
        await world.bind()
        assert await world.phase("lc") == "Running"
        assert await world.let_go() == {"lc-ps-0", *(f"lc-worker-{index}" for index in range(4))}

    play(scenario)


def test_a_group_counts_its_pods() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.job("lc", task("worker", 3))
        await world.bind()
        await world.turns("Running", "lc-worker-0")
        await world.turns("Succeeded", "lc-worker-1")
        await world.turns("Failed", "lc-worker-2")
        status = await world.status("lc")
        assert (status["running"], status["succeeded"], status["failed"]) == (1, 1, 1)

    play(scenario)


def test_a_group_whose_status_is_a_subresource_is_written_too() -> None:
    async def scenario(world: World) -> None:
        world.store.declare(POD_GROUP, status_subresource=True)
        await world.nodes("1")
        await world.job("lc", task("worker", 1))
        await world.bind()
        assert await world.phase("lc") == "Running"

    play(scenario)


def test_a_group_of_no_job_is_reckoned_in_equal_parts() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2", "2", "2")
        spec = {"minMember": 3, "queue": "default", "minResources": {"cpu": "6", "memory": "3Gi"}}
        for name in ("one", "two"):
            await world.store.create(POD_GROUP, {"metadata": {"name": name}, "spec": spec})
            await world.settle()
        one = await world.store.get(POD_GROUP, "default", "one")
        two = await world.store.get(POD_GROUP, "default", "two")
        assert one["status"]["phase"] == "Inqueue"
        assert (
            "3 pods that request cpu 2, memory 1Gi each"
            in two["status"]["conditions"][0]["message"]
        )

    play(scenario)


def test_numbers_that_change_all_the_time_are_not_told_all_the_time() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2", "2")
        for name in ("a", "b"):
            await world.foreign(name, f"node-{'ab'.index(name)}", "2")
        await world.job("lc", task("worker", 4))
        await world.advance(1)
        first = await world.told("lc")
        await world.turns("Succeeded", "a")
        assert await world.told("lc") == first
        await world.advance(60)
        assert "has room for 2 of them now" in (await world.told("lc"))[1]

    play(scenario)


def test_pods_beyond_the_minimum_leave_the_room_that_is_held_for_others() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("6")
        await world.job("elastic", task("worker", 6), minAvailable=2)
        await world.job("other", task("worker", 3), pods=False)
        await world.bind()
        assert await world.phase("elastic") == "Running"
        assert len(await world.let_go()) == 3
        await world.pods("other")
        assert await world.bind() == 4
        assert await world.phase("other") == "Running"
        await world.turns("Succeeded", "other-worker-0", "other-worker-1")
        assert await world.bind() == 2

    play(scenario)


def test_pods_beyond_the_minimum_start_as_far_as_their_queue_has_room() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("9")
        await world.queue("team", capability={"cpu": "3"})
        await world.job("elastic", task("worker", 6), minAvailable=2, queue="team")
        await world.bind()
        assert len(await world.let_go()) == 3
        await world.store.patch(QUEUE, "", "team", {"spec": {"capability": {"cpu": "5"}}})
        await world.settle()
        assert len(await world.let_go()) == 5
        await world.store.delete(QUEUE, "", "team")
        await world.settle()
        assert len(await world.let_go()) == 5

    play(scenario)


def test_room_that_was_too_little_for_pods_beyond_the_minimum_goes_to_the_most_urgent() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("5")
        await world.store.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 10})
        await world.foreign("web", "node-0", "1")
        await world.job("low", task("worker", 3), minAvailable=2)
        await world.job("high", task("worker", 3), minAvailable=2, priorityClassName="high")
        await world.bind()
        await world.pods("low")
        await world.pods("high")
        assert len(await world.let_go()) == 5
        await world.turns("Succeeded", "web")
        assert "high-worker-2" in await world.let_go()
        assert "low-worker-2" not in await world.let_go()

    play(scenario)


def test_the_place_of_a_pod_that_is_made_anew_is_kept_for_it() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("3")
        await world.job("lc", task("worker", 3))
        await world.bind()
        await world.job("other", task("worker", 1))
        await world.store.delete(POD, "default", "lc-worker-1")
        await world.settle()
        await world.finish_leaving()
        assert await world.phase("other") == "Pending"
        await world.pods("lc")
        assert await world.bind() == 1
        await world.turns("Succeeded", "lc-worker-1")
        assert await world.phase("other") == "Inqueue"

    play(scenario)


def test_a_place_is_kept_until_the_pod_made_anew_is_let_go_whatever_comes_at_the_same_time() -> (
    None
):
    async def scenario(world: World) -> None:
        await world.nodes("3")
        await world.job("lc", task("worker", 3))
        await world.bind()
        await world.job("other", task("worker", 1))
        await world.store.delete(POD, "default", "lc-worker-1")
        await world.settle()
        await world.finish_leaving()
        [again] = [pod for pod in world.blueprints["lc"].pods()
                   if pod["metadata"]["name"] == "lc-worker-1"]  # fmt: skip
        await world.store.create(POD, gated(again))
        await world.store.patch(NODE, "", "node-0", {"metadata": {"labels": {"zone": "a"}}})
        await world.settle()
        assert await world.phase("other") == "Pending"
        assert await world.bind() == 1

    play(scenario)


@pytest.mark.parametrize("made", [True, False], ids=["made anew", "not made yet"])
def test_a_scheduler_that_comes_after_a_crash_keeps_the_places_of_pods_that_went(
    made: bool,
) -> None:
    async def scenario(world: World) -> None:
        await world.nodes("3")
        await world.job("lc", task("worker", 3), minAvailable=2)
        await world.bind()
        await world.job("other", task("worker", 2))
        await world.stop()
        for index in (0, 1):
            await world.store.delete(POD, "default", f"lc-worker-{index}", grace_period_seconds=0)
        if made:
            [again, *_] = world.blueprints["lc"].pods()
            await world.store.create(POD, gated(again))
        await world.start()
        assert await world.phase("other") == "Pending", "one of two CPUs is kept"
        await world.pods("lc")
        await world.bind()
        await world.turns("Succeeded", "lc-worker-2")
        assert "lc-worker-0" in await world.let_go()

    play(scenario)


def test_room_is_held_for_pods_that_were_refused_because_it_was_stolen() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("3")
        await world.job("elastic", task("worker", 3), minAvailable=2)
        await world.bind()
        await world.foreign("thief", "node-0", "1")
        await world.bind()
        await world.job("other", task("worker", 1))
        await world.turns("Succeeded", "thief")
        assert await world.phase("other") == "Pending"
        assert await world.bind() == 1
        await world.turns("Succeeded", "elastic-worker-2")
        assert await world.phase("other") == "Inqueue"

    play(scenario)


def test_nothing_is_held_for_ever_for_pods_that_find_no_node_though_there_is_room() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("3")
        await world.job("elastic", task("worker", 3), minAvailable=2)
        await world.bind()
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                     "message": "no volume in this zone"}  # fmt: skip
        told = {"status": {"conditions": [condition]}}
        await world.store.patch(POD, "default", "elastic-worker-2", told, subresource="status")
        await world.settle()
        await world.job("other", task("worker", 1))
        await world.advance(GRACE - 1)
        assert await world.phase("other") == "Pending"
        await world.advance(1)
        assert await world.phase("other") == "Inqueue"

    play(scenario)


@pytest.mark.parametrize("job_first", [True, False])
def test_a_gang_that_grew_before_it_started_and_does_not_fit_any_more_waits_anew(
    job_first: bool,
) -> None:
    async def scenario(world: World) -> None:
        await world.nodes("5")
        await world.job("lc", task("worker", 2), pods=False)
        await world.job("other", task("worker", 2), pods=False)
        await world.job("third", task("worker", 2))
        name = (await world.group("lc"))["metadata"]["name"]
        writes: list[tuple[Kind, str, Object]] = [
            (JOB, "lc", {"tasks": [task("worker", 4)], "minAvailable": 4}),
            (POD_GROUP, name, {"minMember": 4, "minTaskMember": {"worker": 4},
                               "minResources": {"cpu": "4"}}),
        ]  # fmt: skip
        for kind, named, spec in writes if job_first else reversed(writes):
            await world.store.patch(kind, "default", named, {"spec": spec})
            await world.settle()
        assert await world.phase("lc") == "Pending"
        assert await world.phase("other") == "Inqueue"
        assert await world.phase("third") == "Inqueue"
        assert [event["reason"] for event in (await world.store.list(EVENT)).items] == ["TakenBack"]

    play(scenario)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("lower", "NotEnoughResources"),
        ("lowest", "ExceedsQueue"),
        ("vanish", "QueueNotFound"),
        ("close", ""),
    ],
)
def test_a_queue_that_changes_before_a_gang_starts(change: str, reason: str) -> None:
    async def scenario(world: World) -> None:
        await world.nodes("9")
        await world.queue("team", capability={"cpu": "4"})
        await world.job("first", task("worker", 2), queue="team")
        await world.job("lc", task("worker", 2), queue="team", pods=False)
        if change == "vanish":
            await world.store.delete(QUEUE, "", "team")
        elif change == "close":
            closed = {"status": {"state": "Closed"}}
            await world.store.patch(QUEUE, "", "team", closed, subresource="status")
        else:
            cpu = {"lower": "3", "lowest": "1"}[change]
            await world.store.patch(QUEUE, "", "team", {"spec": {"capability": {"cpu": cpu}}})
        await world.settle()
        await world.pods("lc")
        if not reason:
            assert {"lc-worker-0", "lc-worker-1"} <= await world.let_go()
            return
        assert await world.let_go() == {"first-worker-0", "first-worker-1"}
        assert (await world.told("lc"))[0] == reason
        [event] = (await world.store.list(EVENT)).items
        assert event["reason"] == "TakenBack"
        assert event["message"].endswith((await world.told("lc"))[1])

    play(scenario)


def test_a_gang_that_is_gone_before_it_started_leaves_its_room_to_others() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2")
        await world.job("lc", task("worker", 2), pods=False)
        await world.job("other", task("worker", 2))
        assert await world.phase("other") == "Pending"
        name = (await world.group("lc"))["metadata"]["name"]
        await world.store.delete(POD_GROUP, "default", name)
        await world.settle()
        assert await world.phase("other") == "Inqueue"

    play(scenario)


@pytest.mark.parametrize("ends", ["admitted", "gone"])
def test_where_a_queue_keeps_its_order_pods_beyond_a_minimum_do_not_pass_a_gang(ends: str) -> None:
    async def scenario(world: World) -> None:
        await world.nodes("5")
        await world.queue("team", dequeueStrategy="fifo")
        await world.foreign("web", "node-0", "2")
        await world.job("elastic", task("worker", 3), minAvailable=2, queue="team", pods=False)
        await world.job("large", task("worker", 2), queue="team")
        await world.pods("elastic")
        await world.bind()
        assert await world.phase("elastic") == "Running"
        assert await world.let_go() == {"web", "elastic-worker-0", "elastic-worker-1"}
        if ends == "gone":
            name = (await world.group("large"))["metadata"]["name"]
            await world.store.delete(POD_GROUP, "default", name)
            await world.settle()
        else:
            await world.turns("Succeeded", "web")
            assert await world.phase("large") == "Inqueue"
        assert "elastic-worker-2" in await world.let_go()

    play(scenario)


async def fail(world: World, pod: str) -> None:
    """A pod fails, and its controller deletes it."""
    await world.turns("Failed", pod)
    await world.store.delete(POD, "default", pod, grace_period_seconds=0)
    await world.settle()


def test_a_gang_that_lacks_some_of_its_minimum_again_comes_before_gangs_that_wait() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.job("lc", task("worker", 5), minAvailable=4)
        await world.bind()
        for name in ("first", "second"):
            await world.job(name, task("worker", 1))
        await fail(world, "lc-worker-1")
        assert await world.phase("first") == "Inqueue", "it was there before the pod made anew"
        await world.pods("first")
        await world.pods("lc")
        assert await world.bind() == 1
        await world.turns("Succeeded", "first-worker-0")
        assert "lc-worker-1" in await world.let_go()
        assert await world.phase("second") == "Pending"
        await world.bind()
        await world.turns("Succeeded", "lc-worker-1")
        assert await world.phase("second") == "Inqueue", "before pods beyond the minimum"

    play(scenario)


def test_where_a_queue_keeps_its_order_a_gang_that_runs_is_not_kept_from_its_minimum() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("4")
        await world.queue("fifo", parent="root", dequeueStrategy="fifo")
        await world.job("lc", task("worker", 4), queue="fifo")
        await world.bind()
        await world.job("other", task("worker", 4), queue="fifo")
        await fail(world, "lc-worker-1")
        await world.pods("lc")
        assert await world.bind() == 1, "each would wait for the other"

    play(scenario)


def test_bits_of_room_are_kept_free_while_a_minimum_waits_to_see_them_grow() -> None:
    async def scenario(world: World) -> None:
        await world.nodes("2", "2")
        await world.foreign("web", "node-0", "1")
        await world.job("elastic", task("worker", 2), minAvailable=1)
        await world.job("large", task("worker", 1, "2"))
        await world.pods("elastic")
        await world.pods("large")
        assert await world.let_go() == {"web", "elastic-worker-0", "large-worker-0"}
        # Kubernetes' scheduler puts the small one where the large one should go.
        where = {"spec": {"nodeName": "node-1"}}
        await world.store.patch(POD, "default", "elastic-worker-0", where)
        await world.settle()
        assert await world.bind() == 0
        assert await world.phase("elastic") == "Running"
        await world.job("small", task("worker", 1))
        assert await world.phase("small") == "Pending"
        assert "elastic-worker-1" not in await world.let_go()
        await world.turns("Succeeded", "web")
        assert await world.bind() == 1
        assert await world.phase("large") == "Running"
        assert await world.phase("small") == "Inqueue"

    play(scenario)


async def insist(world: World, phase: str) -> None:
    """Be somebody who wants every PodGroup to say a phase, at once and always."""
    async for event in world.store.watch(POD_GROUP, "0"):
        group = event.object
        if (group.get("status") or {}).get("phase", "Pending") != phase:
            place = (group["metadata"]["namespace"], group["metadata"]["name"])
            await world.store.patch(POD_GROUP, *place, {"status": {"phase": phase}})


@pytest.mark.parametrize(("cpus", "phase"), [("2", "Pending"), ("1", "Inqueue")])
def test_two_who_undo_each_other_s_decisions_do_so_ever_more_seldom(cpus: str, phase: str) -> None:
    async def scenario(world: World) -> None:
        await world.nodes(cpus)
        other = asyncio.create_task(insist(world, phase))
        await world.job("lc", task("worker", 2))
        before = world.store.version
        await world.advance(600)
        assert world.store.version - before < 100, "two writes and an Event a minute, and the start"
        assert await world.let_go() == set(), "what does not fit is not let go, whoever admits it"
        other.cancel()
        grown = {"status": {"allocatable": {"cpu": "2"}}}
        await world.store.patch(NODE, "", "node-0", grown, subresource="status")
        await world.advance(60)
        await world.pods("lc")
        assert await world.bind() == 2
        assert await world.phase("lc") == "Running"

    play(scenario)


@pytest.mark.parametrize("kind", [POD_GROUP, POD], ids=lambda kind: kind.plural)
def test_writes_that_are_refused_are_tried_again_ever_more_seldom(kind: Kind) -> None:
    made: list[Refusing] = []

    def wrap(store: Store) -> Cluster:
        made.append(Refusing(store))
        return made[0]

    async def scenario(world: World) -> None:
        [refusing] = made
        await world.nodes("2")
        refusing.kind = kind
        await world.job("lc", task("worker", 1), pods=False)
        if await world.phase("lc") == "Inqueue":
            await world.pods("lc")
        for number in range(100):  # whatever else goes on
            await world.advance(3)
            await world.foreign(f"other-{number}", "node-0", "0")
        assert refusing.refused < 20
        said = [(one["reason"], one["count"], one["message"])
                for one in (await world.store.list(EVENT)).items]  # fmt: skip
        assert said == [("Refused", 1, "what is decided cannot be carried out: no right")]
        refusing.kind = None
        await world.advance(60)
        await world.pods("lc")
        assert await world.bind() == 1

    play(scenario, wrap)
