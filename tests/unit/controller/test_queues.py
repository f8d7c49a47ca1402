"""Queues kept up by the controller, on a real store: states, Commands, counts, crashes."""

import itertools
from typing import Any

import pytest
from faults import ONE_OBJECT, Fault, Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import COMMAND, EVENT, POD_GROUP, QUEUE, Kind
from vcjob.api.names import CLOSED_BY_PARENT
from vcjob.api.types import Object
from vcjob.controller.cluster import Forbidden, Unavailable
from vcjob.core.queue_states import COUNTERS

numbers = itertools.count()


def job(name: str, queue: str) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": 1, "template": template}
    return apply_defaults({"metadata": {"name": name}, "spec": {"queue": queue, "tasks": [task]}})


async def make(world: Simulation, name: str, parent: str = "root") -> None:
    await world.store.create(QUEUE, {"metadata": {"name": name}, "spec": {"parent": parent}})
    await world.settle()


async def order(world: Simulation, queue: str, action: str) -> None:
    """What ``vcctl queue operate`` writes."""
    uid = (await world.store.get(QUEUE, "", queue))["metadata"]["uid"]
    target = {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": queue, "uid": uid}
    metadata = {"name": f"{queue}-{action.lower()}-{next(numbers)}", "namespace": "default"}
    await world.store.create(COMMAND, {"metadata": metadata, "action": action, "target": target})


async def state(world: Simulation, name: str) -> str:
    return str((await world.store.get(QUEUE, "", name))["status"]["state"])


async def states(world: Simulation, *names: str) -> list[str]:
    return [await state(world, name) for name in names]


async def counts(world: Simulation, name: str) -> Object:
    status = (await world.store.get(QUEUE, "", name))["status"]
    return {key: status[key] for key in COUNTERS if status.get(key)}


def test_a_queue_is_closing_while_something_is_in_it_then_closed_and_open_when_asked() -> None:
    async def story(world: Simulation) -> None:
        await make(world, "q")
        assert await state(world, "q") == "Open"
        await world.run_job(job("a", "q"))
        await order(world, "q", "CloseQueue")
        await world.settle()
        assert await state(world, "q") == "Closing"
        await world.end_running()
        await world.advance(3)
        assert await world.phase("a") == "Completed"
        assert await state(world, "q") == "Closed"
        await order(world, "q", "OpenQueue")
        await world.settle()
        assert await state(world, "q") == "Open"
        assert not (await world.store.list(COMMAND)).items
        told = [one for one in await world.events() if one["involvedObject"]["kind"] == "Queue"]
        assert [one["reason"] for one in told] == ["CloseQueue", "OpenQueue"]
        assert {one["metadata"]["namespace"] for one in told} == {"default"}

    simulated(story)


def test_what_is_below_a_queue_is_closed_with_it_and_only_that_is_opened_again() -> None:
    async def story(world: Simulation) -> None:
        for name, parent in (("top", "root"), ("a", "top"), ("b", "top"), ("leaf", "a")):
            await make(world, name, parent)
        await order(world, "b", "CloseQueue")
        await order(world, "top", "CloseQueue")
        await world.settle()
        assert await states(world, "top", "a", "b", "leaf") == ["Closed"] * 4
        await order(world, "leaf", "OpenQueue")
        await world.settle()
        assert await state(world, "leaf") == "Closed"
        assert any("above it, a, is Closed" in text for text in await world.messages())
        await order(world, "top", "OpenQueue")
        await world.settle()
        assert await states(world, "top", "a", "b", "leaf") == ["Open", "Open", "Closed", "Open"]
        marks = [
            one["metadata"].get("annotations") for one in (await world.store.list(QUEUE)).items
        ]
        assert not any((mark or {}).get(CLOSED_BY_PARENT) for mark in marks)

    simulated(story)


def test_podgroups_are_counted_by_phase_also_those_of_no_job_at_most_once_a_second() -> None:
    async def story(world: Simulation) -> None:
        await make(world, "q")
        await world.advance(2)
        foreign = {"metadata": {"name": "g", "namespace": "other"}, "spec": {"queue": "q"}}
        await world.store.create(POD_GROUP, foreign)
        await world.settle()
        assert await counts(world, "q") == {"pending": 1}
        version = (await world.store.get(QUEUE, "", "q"))["metadata"]["resourceVersion"]
        for number in range(20):
            await world.create_job(job(f"j{number}", "q"))
            await world.settle()
        there = await world.store.get(QUEUE, "", "q")
        assert there["metadata"]["resourceVersion"] == version, "its second is not over"
        await world.store.delete(POD_GROUP, "other", "g")
        await world.run_all()
        await world.advance(1)
        assert await counts(world, "q") == {"inqueue": 20}
        quiet = world.store.version
        await world.advance(600)
        assert world.store.version == quiet
        assert await counts(world, "default") == {}

    simulated(story)


@pytest.mark.parametrize("fault", ONE_OBJECT)
def test_whatever_fails_orders_are_obeyed_in_their_order(fault: Fault) -> None:
    """Closing and opening a tree of queues, with a fault at each of its writes in turn."""

    async def story(world: Simulation) -> int:
        assert isinstance(world.cluster, Faulty)
        await make(world, "top")
        await make(world, "a", "top")
        first = world.cluster.writes
        world.cluster.arm(armed, at)
        for action in ("CloseQueue", "OpenQueue", "CloseQueue"):
            await order(world, "top", action)
        await world.settle()
        await world.advance(70)
        assert await states(world, "top", "a") == ["Closed", "Closed"]
        await order(world, "top", "OpenQueue")
        await world.settle()
        await world.advance(70)
        assert await states(world, "top", "a") == ["Open", "Open"]
        assert not (await world.store.list(COMMAND)).items
        return world.cluster.writes - first

    armed: Fault | None = None
    at = 0
    writes = simulated(story, wrap=Faulty)
    assert writes > 10
    armed = fault
    for at in range(writes):  # noqa: B007
        simulated(story, wrap=Faulty)


def test_a_command_that_cannot_be_deleted_is_obeyed_once() -> None:
    async def story(world: Simulation) -> None:
        assert isinstance(world.cluster, Faulty)
        refused = []

        async def refuse(kind: Kind, *_: Any) -> None:
            if kind == COMMAND and len(refused) < 3:
                refused.append(kind)
                raise Unavailable("not now")

        world.cluster.before_delete.append(refuse)
        await make(world, "q")
        await order(world, "q", "CloseQueue")
        await world.settle()
        opened = {"status": {"state": "Open"}}  # by somebody else, meanwhile
        await world.store.patch(QUEUE, "", "q", opened, subresource="status")
        await world.advance(60)
        assert len(refused) == 3
        assert not (await world.store.list(COMMAND)).items
        assert await state(world, "q") == "Open"
        assert sum(one.get("count", 1) for one in (await world.store.list(EVENT)).items) == 1

    simulated(story, wrap=Faulty)


def test_counts_that_are_refused_are_tried_ever_more_seldom_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(world: Simulation) -> None:
        assert isinstance(world.cluster, Faulty)
        tries: list[float] = []

        async def refuse(kind: Kind, *_: Any) -> None:
            if kind == QUEUE:
                tries.append(world.clock.now())
                raise Forbidden("you may not get queues")

        await make(world, "q")
        await world.advance(2)
        world.cluster.before_patch.append(refuse)
        await world.create_job(job("a", "q"))
        await world.settle()
        await world.advance(600)
        assert 5 < len(tries) < 30
        world.cluster.before_patch.clear()
        await world.advance(60)
        assert await counts(world, "q") == {"pending": 1}

    simulated(story, wrap=Faulty)
    assert [one for one in caplog.messages if "may not get" in one] == [
        "Queue q: you may not get queues"
    ]


def test_a_command_for_a_later_queue_waits_and_one_for_an_earlier_is_dropped() -> None:
    async def story(world: Simulation) -> None:
        await make(world, "old")
        await order(world, "old", "CloseQueue")
        commands = (await world.store.list(COMMAND)).items
        await world.settle()
        for name, target in (("early", {"name": "late"}), ("stale", commands[0]["target"])):
            aimed = {**commands[0]["target"], **target}
            if name == "early":
                del aimed["uid"]
            obj = {"metadata": {"name": name, "namespace": "x"}, "action": "CloseQueue",
                   "target": aimed}  # fmt: skip
            if name == "stale":
                await world.store.delete(QUEUE, "", "old")
                await make(world, "old")
            await world.store.create(COMMAND, obj)
        await world.settle()
        assert [one["metadata"]["name"] for one in (await world.store.list(COMMAND)).items] == [
            "early"
        ]
        assert await state(world, "old") == "Open"
        await make(world, "late")
        assert await state(world, "late") == "Closed"

    simulated(story)


def test_who_sees_not_everything_leaves_queues_alone() -> None:
    async def story(world: Simulation) -> None:
        await make(world, "q")
        await order(world, "q", "CloseQueue")
        await world.advance(60)
        assert "status" not in await world.store.get(QUEUE, "", "q")
        assert len((await world.store.list(COMMAND)).items) == 1

    simulated(story, controller_options={"keep_queues": False})
