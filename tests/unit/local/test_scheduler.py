"""The scheduler of this machine on the real store: gangs whole, in order, told with numbers."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from itertools import count
from typing import Any

import pytest

from vcjob.api.kinds import NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from vcjob.api.names import GROUP_NAME, TASK_SPEC
from vcjob.api.types import Object
from vcjob.core.scheduling.requests import new_queue
from vcjob.local.scheduler import Scheduler
from vcjob.local.store import Store

CAPACITY = {"cpu": "4", "memory": "8Gi"}


class Machine:
    """A store and a scheduler that runs, and shorthands for what tests do."""

    def __init__(self, capacity: Mapping[str, str]) -> None:
        self._now = count(1_000_000_000)
        self.store = Store(lambda: float(next(self._now)))
        self.scheduler = Scheduler(
            self.store, capacity, node="here", clock=lambda: float(next(self._now))
        )

    async def settle(self) -> None:
        """Until every watch has seen everything: no request to the store ever waits."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def gang(
        self,
        name: str,
        size: int = 0,
        *,
        needs: Mapping[str, str] | None = None,
        queue: str = "default",
        priority: str = "",
        tasks: Mapping[str, int] | None = None,
    ) -> None:
        spec: Object = {"minMember": size, "queue": queue, "minResources": dict(needs or {})}
        spec["minTaskMember"] = dict(tasks or {})
        if priority:
            spec["priorityClassName"] = priority
        await self.store.create(POD_GROUP, {"metadata": {"name": name}, "spec": spec})
        await self.settle()

    async def pod(
        self,
        name: str,
        group: str,
        requests: Mapping[str, str] | None = None,
        task: str = "worker",
        gates: tuple[str, ...] = (),
    ) -> None:
        container: Object = {"name": "main", "resources": {"requests": dict(requests or {})}}
        annotations = {GROUP_NAME: group, TASK_SPEC: task} if group else {}
        pod = {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "containers": [container],
                "schedulingGates": [{"name": gate} for gate in gates],
            },
        }
        await self.store.create(POD, pod)
        await self.settle()

    async def turns(self, pod: str, phase: str) -> None:
        status = {"status": {"phase": phase}}
        await self.store.patch(POD, "default", pod, status, subresource="status")
        await self.settle()

    async def queue(self, name: str, **spec: Any) -> None:
        await self.store.create(QUEUE, new_queue(name, spec))
        await self.settle()

    async def status(self, gang: str) -> Object:
        group = await self.store.get(POD_GROUP, "default", gang)
        status: Object = group.get("status") or {}
        return status

    async def phase(self, gang: str) -> str:
        phase: str = (await self.status(gang)).get("phase", "")
        return phase

    async def told(self, gang: str) -> tuple[str, str]:
        condition = (await self.status(gang))["conditions"][-1]
        return condition["reason"], condition["message"]

    async def bound(self) -> set[str]:
        pods = (await self.store.list(POD)).items
        return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


Scenario = Callable[[Machine], Coroutine[Any, Any, None]]


def play(scenario: Scenario, capacity: Mapping[str, str] = CAPACITY) -> None:
    async def run() -> None:
        machine = Machine(capacity)
        running = asyncio.create_task(machine.scheduler.run())
        await machine.settle()
        try:
            await scenario(machine)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


def test_a_gang_is_admitted_then_bound_when_all_of_it_is_there_then_running() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 2)
        assert await machine.phase("lc") == "Inqueue"
        await machine.pod("lc-worker-0", "lc")
        assert await machine.bound() == set()
        await machine.pod("lc-worker-1", "lc")
        assert await machine.bound() == {"lc-worker-0", "lc-worker-1"}
        assert await machine.phase("lc") == "Running"

    play(scenario)


def test_a_bound_pod_names_the_node_and_says_that_it_is_scheduled() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 1)
        await machine.pod("lc-worker-0", "lc")
        pod = await machine.store.get(POD, "default", "lc-worker-0")
        assert pod["spec"]["nodeName"] == "here"
        [condition] = pod["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")

    play(scenario)


def test_each_task_must_have_its_minimum() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 2, tasks={"ps": 1, "worker": 1})
        await machine.pod("lc-worker-0", "lc")
        await machine.pod("lc-worker-1", "lc")
        assert await machine.bound() == set()
        await machine.pod("lc-ps-0", "lc", task="ps")
        assert await machine.bound() == {"lc-worker-0", "lc-worker-1", "lc-ps-0"}

    play(scenario)


def test_a_job_may_start_with_fewer_pods_than_its_tasks_minimums() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 1, tasks={"ps": 1, "worker": 1})
        await machine.pod("lc-worker-0", "lc")
        assert await machine.bound() == {"lc-worker-0"}

    play(scenario)


def test_a_pod_without_a_gang_is_bound_alone() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.pod("alone", "")
        assert await machine.bound() == {"alone"}

    play(scenario)


def test_pods_of_a_gang_that_is_not_admitted_stay_unbound() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 1, needs={"cpu": "5"})
        await machine.pod("lc-worker-0", "lc")
        assert await machine.bound() == set()

    play(scenario)


def test_what_requests_nothing_always_fits() -> None:
    async def scenario(machine: Machine) -> None:
        for number in range(20):
            await machine.gang(f"lc{number}", 1, needs={"pods": "1", "count/pods": "1"})
            await machine.pod(f"lc{number}-worker-0", f"lc{number}")
        assert len(await machine.bound()) == 20

    play(scenario, {"cpu": "1", "memory": "1Gi"})


def test_a_gang_waits_for_room_and_starts_when_another_ends() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("first", 1, needs={"cpu": "3"})
        await machine.pod("first-worker-0", "first", {"cpu": "3"})
        await machine.gang("second", 1, needs={"cpu": "2"})
        assert await machine.phase("second") == "Pending"
        reason, message = await machine.told("second")
        assert reason == "NotEnoughResources"
        assert "needs cpu 2" in message
        assert "has cpu 1 left" in message
        await machine.turns("first-worker-0", "Succeeded")
        assert await machine.phase("second") == "Inqueue"
        reason, _ = await machine.told("second")
        assert reason == "Fits"

    play(scenario)


def test_room_is_held_for_an_admitted_gang_whose_pods_are_not_there_yet() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("first", 2, needs={"memory": "6Gi"})
        await machine.gang("second", 1, needs={"memory": "4Gi"})
        assert await machine.phase("first") == "Inqueue"
        assert await machine.phase("second") == "Pending"
        await machine.store.delete(POD_GROUP, "default", "first")
        await machine.settle()
        assert await machine.phase("second") == "Inqueue"

    play(scenario)


@pytest.mark.parametrize(
    ("needs", "reason", "numbers"),
    [
        ({"cpu": "64"}, "ExceedsMachine", ("cpu 64", "cpu 4")),
        ({"memory": "512Gi"}, "ExceedsMachine", ("memory 512Gi", "memory 8Gi")),
        ({"nvidia.com/gpu": "1"}, "ExceedsMachine", ("nvidia.com/gpu 1", "nvidia.com/gpu 0")),
        ({"cpu": "64", "requests.cpu": "64"}, "ExceedsMachine", ("cpu 64",)),
    ],
)
def test_more_than_the_machine_will_ever_have_is_told_with_the_numbers(
    needs: Mapping[str, str], reason: str, numbers: tuple[str, ...]
) -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 1, needs=needs)
        told, message = await machine.told("lc")
        assert told == reason
        assert all(number in message for number in numbers)

    play(scenario)


def test_a_queue_bounds_what_its_gangs_and_those_below_it_hold_together() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.queue("team", capability={"cpu": "2"})
        await machine.queue("night", parent="team")
        await machine.gang("much", 1, needs={"cpu": "3"}, queue="night")
        reason, message = await machine.told("much")
        assert reason == "ExceedsQueue"
        assert 'queue "team" never has more than cpu 2' in message
        await machine.gang("first", 1, needs={"cpu": "2"}, queue="night")
        await machine.gang("second", 1, needs={"cpu": "1"}, queue="team")
        assert await machine.phase("first") == "Inqueue"
        reason, message = await machine.told("second")
        assert reason == "NotEnoughResources"
        assert 'queue "team" has cpu 0 left' in message

    play(scenario)


def test_a_gang_starts_when_its_missing_queue_comes() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 1, queue="later")
        reason, message = await machine.told("lc")
        assert reason == "QueueNotFound"
        assert 'no queue "later"' in message
        await machine.queue("later")
        assert await machine.phase("lc") == "Inqueue"

    play(scenario)


def test_a_closed_queue_admits_nothing_until_it_opens() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.queue("shut")
        closed = {"status": {"state": "Closed"}}
        await machine.store.patch(QUEUE, "", "shut", closed, subresource="status")
        await machine.settle()
        await machine.gang("lc", 1, queue="shut")
        assert (await machine.told("lc"))[0] == "QueueClosed"
        is_open = {"status": {"state": "Open"}}
        await machine.store.patch(QUEUE, "", "shut", is_open, subresource="status")
        await machine.settle()
        assert await machine.phase("lc") == "Inqueue"

    play(scenario)


def test_the_higher_priority_class_goes_first() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.store.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 10})
        await machine.gang("holder", 1, needs={"cpu": "4"})
        await machine.gang("low", 1, needs={"cpu": "4"})
        await machine.gang("high", 1, needs={"cpu": "4"}, priority="high")
        await machine.store.delete(POD_GROUP, "default", "holder")
        await machine.settle()
        assert await machine.phase("high") == "Inqueue"
        assert await machine.phase("low") == "Pending"

    play(scenario)


def test_a_fifo_queue_lets_nobody_overtake() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.queue("line", dequeueStrategy="fifo")
        await machine.gang("holder", 1, needs={"cpu": "2"})
        await machine.gang("big", 1, needs={"cpu": "3"}, queue="line")
        await machine.gang("small", 1, needs={"cpu": "1"}, queue="line")
        assert await machine.told("small") == (
            "BehindAnother",
            'small waits behind big in queue "line", which keeps its order',
        )
        await machine.gang("other", 1, needs={"cpu": "1"})
        assert await machine.phase("other") == "Inqueue"

    play(scenario)


def test_pods_beyond_the_minimum_that_do_not_fit_say_what_is_missing() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 1, needs={"cpu": "3"})
        await machine.pod("lc-worker-0", "lc", {"cpu": "3"})
        await machine.pod("lc-worker-1", "lc", {"cpu": "3"})
        assert await machine.bound() == {"lc-worker-0"}
        pod = await machine.store.get(POD, "default", "lc-worker-1")
        [condition] = pod["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"] == "it needs cpu 3; this machine has cpu 1 left"
        await machine.turns("lc-worker-0", "Failed")
        assert await machine.bound() == {"lc-worker-0", "lc-worker-1"}

    play(scenario)


def test_pods_beyond_a_minimum_leave_alone_what_is_held_for_another_gang() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("wide", 1, needs={"cpu": "1"})
        await machine.gang("late", 3, needs={"cpu": "3"})
        assert await machine.phase("late") == "Inqueue"
        for number in range(4):
            await machine.pod(f"w{number}", "wide", {"cpu": "1"})
        assert await machine.bound() == {"w0"}
        for number in range(3):
            await machine.pod(f"l{number}", "late", {"cpu": "1"})
        assert await machine.bound() == {"w0", "l0", "l1", "l2"}
        await machine.turns("l0", "Succeeded")
        assert await machine.bound() == {"w0", "l0", "l1", "l2", "w1"}

    play(scenario)


def test_pods_of_no_gang_leave_alone_what_is_held_for_one() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("late", 2, needs={"cpu": "4"})
        await machine.pod("alone", "", {"cpu": "1"})
        assert await machine.bound() == set()
        for number in range(2):
            await machine.pod(f"l{number}", "late", {"cpu": "2"})
        assert await machine.bound() == {"l0", "l1"}

    play(scenario)


def test_queues_bound_what_is_beyond_a_minimum_too_until_they_have_more() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.queue("upper", capability={"cpu": "2"})
        await machine.queue("lower", parent="upper")
        await machine.gang("wide", 1, needs={"cpu": "1"}, queue="lower")
        for number in range(4):
            await machine.pod(f"w{number}", "wide", {"cpu": "1"})
        assert await machine.bound() == {"w0", "w1"}
        told = (await machine.store.get(POD, "default", "w2"))["status"]["conditions"][-1]
        assert told["message"] == 'it needs cpu 1; queue "upper" has cpu 0 left'
        more = {"spec": {"capability": {"cpu": "3"}}}
        await machine.store.patch(QUEUE, "", "upper", more)
        await machine.settle()
        assert await machine.bound() == {"w0", "w1", "w2"}
        await machine.store.delete(QUEUE, "", "lower")
        await machine.turns("w0", "Succeeded")
        assert await machine.bound() == {"w0", "w1", "w2"}
        told = (await machine.store.get(POD, "default", "w3"))["status"]["conditions"][-1]
        assert 'there is no queue "lower"' in told["message"]

    play(scenario)


def test_a_pod_that_was_deleted_keeps_its_place_for_the_one_made_anew() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("all", 4, needs={"cpu": "4"})
        for number in range(4):
            await machine.pod(f"a{number}", "all", {"cpu": "1"})
        await machine.gang("next", 1, needs={"cpu": "1"})
        await machine.pod("alone", "", {"cpu": "1"})
        await machine.store.delete(POD, "default", "a1", grace_period_seconds=0)
        await machine.settle()
        assert await machine.phase("next") == "Pending"
        await machine.pod("a1", "all", {"cpu": "1"})
        assert await machine.bound() == {"a0", "a1", "a2", "a3"}
        await machine.store.delete(POD_GROUP, "default", "all")
        await machine.store.delete(POD, "default", "a1", grace_period_seconds=0)
        await machine.settle()
        assert await machine.phase("next") == "Inqueue", "nobody makes it anew"

    play(scenario)


def test_pods_that_are_still_ending_keep_their_room_so_that_no_gang_starts_in_part() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("first", 4, needs={"cpu": "4"})
        for number in range(4):
            await machine.pod(f"f{number}", "first", {"cpu": "1"})
        await machine.gang("next", 2, needs={"cpu": "2"})
        await machine.store.delete(POD_GROUP, "default", "first")  # as a restart of all does
        for number in range(4):
            await machine.store.delete(POD, "default", f"f{number}")
        await machine.gang("first", 4, needs={"cpu": "4"})
        for gone in range(2):
            assert await machine.phase("next") == "Pending"
            await machine.store.delete(POD, "default", f"f{gone}", grace_period_seconds=0)
            await machine.settle()
        assert await machine.phase("next") == "Inqueue"

    play(scenario)


def test_a_gang_whose_pod_group_was_deleted_goes_on_in_the_room_that_its_pods_have() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.queue("q", capability={"cpu": "4"})
        await machine.gang("all", 4, needs={"cpu": "4"}, queue="q")
        for number in range(4):
            await machine.pod(f"a{number}", "all", {"cpu": "1"})
        await machine.gang("next", 1, needs={"cpu": "1"})
        await machine.store.delete(POD_GROUP, "default", "all")
        await machine.settle()
        await machine.gang("all", 4, needs={"cpu": "4"}, queue="q")
        assert await machine.phase("all") == "Running"
        assert await machine.phase("next") == "Pending"

    play(scenario)


def test_pods_whose_pod_group_was_deleted_before_all_were_there_wait_for_it() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 2, needs={"cpu": "2"})
        await machine.pod("lc-0", "lc", {"cpu": "1"})
        await machine.store.delete(POD_GROUP, "default", "lc")
        await machine.settle()
        assert await machine.bound() == set()
        told = (await machine.store.get(POD, "default", "lc-0"))["status"]["conditions"][-1]
        assert told["message"] == "its PodGroup lc is not there"
        await machine.gang("lc", 2, needs={"cpu": "2"})
        await machine.pod("lc-1", "lc", {"cpu": "1"})
        assert await machine.bound() == {"lc-0", "lc-1"}

    play(scenario)


def test_in_a_queue_in_order_pods_beyond_a_minimum_wait_for_gangs_and_nobody_for_one_gone() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.queue("q", dequeueStrategy="fifo", capability={"cpu": "3"})
        await machine.gang("wide", 1, needs={"cpu": "1"}, queue="q")
        await machine.gang("head", 3, needs={"cpu": "3"}, queue="q")
        for number in range(2):
            await machine.pod(f"w{number}", "wide", {"cpu": "1"})
        assert await machine.bound() == {"w0"}
        await machine.gang("small", 1, needs={"cpu": "1"}, queue="q")
        assert (await machine.told("small"))[0] == "BehindAnother"
        await machine.store.delete(POD_GROUP, "default", "head")
        await machine.settle()
        assert await machine.phase("small") == "Inqueue"
        assert await machine.bound() == {"w0", "w1"}

    play(scenario)


def test_a_gang_counts_its_pods() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("lc", 3)
        for index, phase in enumerate(("Running", "Succeeded", "Failed")):
            await machine.pod(f"lc-worker-{index}", "lc")
            await machine.turns(f"lc-worker-{index}", phase)
        status = await machine.status("lc")
        assert {name: status[name] for name in ("running", "succeeded", "failed")} == {
            "running": 1,
            "succeeded": 1,
            "failed": 1,
        }

    play(scenario)


def test_a_scheduler_that_starts_later_goes_on_from_what_there_is() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("first", 1, needs={"cpu": "3"})
        await machine.pod("first-worker-0", "first", {"cpu": "3"})
        await machine.gang("second", 1, needs={"cpu": "2"})
        other = Scheduler(machine.store, CAPACITY, node="here", clock=lambda: 0.0)
        running = asyncio.create_task(other.run())
        await machine.settle()
        assert await machine.phase("second") == "Pending"
        await machine.turns("first-worker-0", "Succeeded")
        assert await machine.phase("second") == "Inqueue"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    play(scenario)


def test_a_gated_pod_is_told_so_and_bound_when_its_gates_are_gone() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.pod("held", "", gates=("a", "b"))
        [condition] = (await machine.store.get(POD, "default", "held"))["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")
        for gates in ([{"name": "b"}], []):
            assert await machine.bound() == set()
            patch = {"spec": {"schedulingGates": gates}}
            await machine.store.patch(POD, "default", "held", patch)
            await machine.settle()
        assert await machine.bound() == {"held"}

    play(scenario)


def test_a_gang_is_not_complete_without_its_gated_pods() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.gang("g", 2, tasks={"worker": 2})
        await machine.pod("free", "g")
        await machine.pod("held", "g", gates=("a",))
        assert await machine.bound() == set()
        assert await machine.phase("g") == "Inqueue"
        await machine.store.patch(POD, "default", "held", {"spec": {"schedulingGates": None}})
        await machine.settle()
        assert await machine.bound() == {"free", "held"}
        assert await machine.phase("g") == "Running"

    play(scenario)


def test_a_cordoned_node_takes_pods_when_it_is_uncordoned() -> None:
    async def scenario(machine: Machine) -> None:
        for name in ("here", "elsewhere"):
            await machine.store.create(NODE, {"metadata": {"name": name}, "spec": {}})
        cordoned, open_again = {"unschedulable": True}, {"unschedulable": None}
        await machine.store.patch(NODE, "", "elsewhere", {"spec": cordoned})
        await machine.pod("before", "")
        await machine.store.patch(NODE, "", "here", {"spec": cordoned})
        await machine.pod("after", "")
        assert await machine.bound() == {"before"}
        pod = await machine.store.get(POD, "default", "after")
        [condition] = pod["status"]["conditions"]
        assert condition["reason"] == "Unschedulable"
        assert "uncordon" in condition["message"]

        await machine.store.patch(NODE, "", "here", {"spec": open_again})
        await machine.settle()
        assert await machine.bound() == {"before", "after"}

    play(scenario)
