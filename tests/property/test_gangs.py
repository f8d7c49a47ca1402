"""Gangs on a cluster, whatever jobs, nodes, thieves and crashes come in which order.

Pods ask for whole CPUs, so that how much fits can be counted by anybody. Where some ask for two,
the cluster's scheduler may put others in their way, and what then fits nowhere holds nothing: how
much is promised is counted only where all are alike. All come to their end, and to rest, anyway.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fake_kube_scheduler import is_over, is_wanted, room_of
from gang_world import GRACE, World, task
from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.api.kinds import NODE, POD, QUEUE
from vcjob.api.names import OUT_OF_SYNC
from vcjob.api.types import Object
from vcjob.core.scheduling.shapes import BILLION

small = st.integers(0, 7)
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ("job", "job", "pods", "pods", "bind", "bind", "steal", "free", "cordon", "uncordon",
             "end", "leave", "time", "crash", "delete", "fail", "lower", "raise")
        ),
        small,
        small,
    ),
    max_size=40,
)  # fmt: skip
_SHRINKS = ("steal", "cordon", "lower")
"""Steps after which there may be less than was promised: nobody can help it."""
_QUEUES = {"default": "root", "team": "root"}
_CAPABILITY = 4


class Story:
    """What happens in a world, and what must hold after each step."""

    def __init__(self, world: World, *, mixed: bool) -> None:
        self.world = world
        self.mixed = mixed
        self.sizes: dict[str, int] = {}
        self.queues: dict[str, str] = {}
        self.cpus: dict[str, int] = {}
        self.thieves = 0
        self.done: set[str] = set()
        self.phases: dict[str, str] = {}
        self.capability = _CAPABILITY
        self.short = {"cluster": 0, "team": 0}
        self.checked_at = world.clock.now()

    async def take(self, step: str, first: int, second: int) -> None:
        act: Callable[[int, int], Awaitable[None]] = getattr(self, f"_{step}")
        shrinks = step in _SHRINKS
        if step in ("delete", "leave"):  # what leaves a cordoned node finds no other
            shrinks = any(map(_is_cordoned, (await self.world.store.list(NODE)).items))
        await act(first, second)
        alike = len(set(self.cpus.values())) < 2
        await self.check(shrinks=shrinks or not alike)

    async def _job(self, size: int, least: int) -> None:
        name = f"job{len(self.sizes)}"
        self.cpus[name] = cpus = 2 if self.mixed and size > 4 else 1
        self.sizes[name] = size = size % (2 if cpus == 2 else 5) + 1
        await self.world.advance(1)  # so that age tells who came first
        number = least
        least = size if number % 2 else max(size - number // 2, 1)
        queue = "team" if size + least > 6 or number % 3 == 0 else "default"
        self.queues[name] = queue
        await self.world.job(
            name, task("worker", size, str(cpus)), pods=False, minAvailable=least, queue=queue
        )

    async def _pods(self, first: int, number: int) -> None:
        """Be the controller: some pods of admitted Jobs that are not there are made."""
        for name in list(self.sizes)[first % 2 :]:
            if name not in self.done and await self.world.phase(name) != "Pending":
                await self.world.pods(name, most=number + 1)

    async def _bind(self, *_: int) -> None:
        await self.world.bind()

    async def _steal(self, number: int, _: int) -> None:
        nodes = (await self.world.store.list(NODE)).items
        node = nodes[number % len(nodes)]
        if room_of(node, (await self.world.all_pods()).values())["cpu"] >= 1:
            self.thieves += 1
            await self.world.foreign(f"thief-{self.thieves}", node["metadata"]["name"], "1")

    async def _free(self, number: int, _: int) -> None:
        name = f"thief-{number}"
        if name in await self.world.all_pods():
            await self.world.turns("Succeeded", name)

    async def _cordon(self, number: int, _: int, mark: bool | None = True) -> None:
        nodes = (await self.world.store.list(NODE)).items
        name = nodes[number % len(nodes)]["metadata"]["name"]
        await self.world.store.patch(NODE, "", name, {"spec": {"unschedulable": mark}})
        await self.world.settle()

    async def _uncordon(self, number: int, _: int) -> None:
        await self._cordon(number, 0, None)

    async def _end(self, *_: int) -> None:
        """Pods come to their end once the minimum of their Job runs, not earlier."""
        for name, size in self.sizes.items():
            pods = await self.of(name)
            started = [one for one, pod in pods.items() if _has_started(pod)]
            if await self._lacking(name) <= 0:
                await self.world.turns("Succeeded", *started)
            if len(started) == size:
                self.done.add(name)

    async def _leave(self, *_: int) -> None:
        await self.world.finish_leaving()

    async def _time(self, number: int, _: int) -> None:
        await self.world.advance(GRACE * number / 3)

    async def _crash(self, *_: int) -> None:
        await self.world.stop()
        await self.world.start()

    async def _delete(self, number: int, index: int) -> None:
        """Somebody deletes a pod."""
        name = f"job{number}-worker-{index}"
        pods = await self.world.all_pods()
        if name in pods and not is_over(pods[name]):
            await self.world.store.delete(POD, "default", name)
            await self.world.settle()

    async def _fail(self, number: int, index: int) -> None:
        """A pod that runs fails, and its controller deletes it."""
        name = f"job{number}-worker-{index}"
        pod = (await self.world.all_pods()).get(name)
        if pod and f"job{number}" not in self.done and _has_started(pod) and not is_over(pod):
            await self.world.turns("Failed", name)
            await self.world.store.delete(POD, "default", name, grace_period_seconds=0)
            await self.world.settle()

    async def _lower(self, number: int, _: int) -> None:
        await self._limit(number % (_CAPABILITY + 1))

    async def _raise(self, *_: int) -> None:
        await self._limit(_CAPABILITY + 1)

    async def _limit(self, cpus: int) -> None:
        self.capability = cpus
        capability = {"spec": {"capability": {"cpu": str(cpus)}}}
        await self.world.store.patch(QUEUE, "", "team", capability)
        await self.world.settle()

    async def of(self, job: str) -> dict[str, Object]:
        return {name: pod for name, pod in (await self.world.all_pods()).items()
                if name.startswith(f"{job}-")}  # fmt: skip

    async def check(self, *, shrinks: bool) -> None:
        pods = await self.world.all_pods()
        nodes = (await self.world.store.list(NODE)).items
        left = self.world.scheduler._books.nodes.place()._room
        for node in nodes:
            recounted = room_of(node, pods.values())["cpu"]
            assert left[node["metadata"]["name"]]["cpu"] == recounted * BILLION
        room = sum(
            int(room_of(node, pods.values())["cpu"]) for node in nodes if not _is_cordoned(node)
        )
        promised = {"default": 0, "team": 0}
        taken = 0
        phases = {}
        for name in self.sizes:
            phases[name] = phase = await self.world.phase(name)
            mine = (await self.of(name)).values()
            free = sum(map(_may_start, mine))
            assert not (free and phase == "Pending"), "let go before its gang"
            least = self.world.blueprints[name].job.spec.min_available
            started = sum(map(_has_started, mine))
            marked = any(OUT_OF_SYNC in pod["metadata"]["annotations"] for pod in mine)
            assert not (marked and started >= least), "taken back though it runs"
            bound = sum(bool(pod["spec"].get("nodeName")) and not is_over(pod) for pod in mine)
            leaving = sum(bool(pod["spec"].get("nodeName")) and not is_over(pod)
                          and not is_wanted(pod) for pod in mine)  # fmt: skip
            lacking = least - started - free - leaving if phase == "Inqueue" else 0
            promised[self.queues[name]] += self.cpus[name] * (free + max(lacking, 0))
            taken += bound * self.cpus[name] if self.queues[name] == "team" else 0
        short = {
            "cluster": max(sum(promised.values()) - room, 0),
            "team": max(promised["team"] + taken - self.capability, 0),
        }
        for place, before in self.short.items():
            assert shrinks or short[place] <= before, f"more was promised than the {place} has"
        self.short = short
        await self._check_order(phases)
        self.phases = phases

    async def _check_order(self, phases: dict[str, str]) -> None:
        """None that is no larger and came earlier waits while a gang is admitted.

        Who was taken back lets others go first for a while: that is told, or, where pods of two
        sizes can be in each other's way again, it was in the time since the last look.
        """
        now = self.world.clock.now()
        long_ago, self.checked_at = self.checked_at + GRACE <= now, now
        names = list(self.sizes)
        for position, name in enumerate(names):
            if self.phases.get(name, "Pending") != "Pending" or phases[name] != "Inqueue":
                continue
            lacking = await self._lacking(name)
            for other in names[:position]:
                alike = [(self.queues[one], self.cpus[one]) for one in (name, other)]
                was_taken_back = self.mixed and long_ago and self.phases.get(other) == "Inqueue"
                if alike[0] != alike[1] or was_taken_back:
                    continue
                if phases[other] == "Pending" and await self._lacking(other) <= lacking:
                    reason, _ = await self.world.told(other)
                    assert reason.startswith("TakenBack"), f"{name} overtook {other}"

    async def _lacking(self, name: str) -> int:
        """How many of its minimum have not started."""
        started = sum(map(_has_started, (await self.of(name)).values()))
        return int(self.world.blueprints[name].job.spec.min_available) - started

    async def end_well(self) -> None:
        """When thieves and cordons are gone, every Job for which there is room comes to its end."""
        nodes = (await self.world.store.list(NODE)).items
        await self.take("raise", 0, 0)
        for number in range(len(nodes)):
            await self.take("uncordon", number, 0)
        for number in range(self.thieves):
            await self.take("free", number + 1, 0)
        for _ in range(10 * len(self.sizes) + 5):
            for step in ("leave", "pods", "bind", "end"):
                await self.take(step, 0, 7)
            await self.world.advance(2 * GRACE)
        assert self.done == set(self.sizes)


def _is_cordoned(node: Object) -> bool:
    return bool(node["spec"].get("unschedulable"))


def _may_start(pod: Object) -> bool:
    """Whether a pod has no gate and no node."""
    waits = pod["spec"].get("schedulingGates") or pod["spec"].get("nodeName")
    return not (waits or is_over(pod)) and is_wanted(pod)


def _has_started(pod: Object) -> bool:
    return is_wanted(pod) and bool(pod["spec"].get("nodeName") or is_over(pod))


@settings(max_examples=80, deadline=None)
@given(steps, st.booleans(), st.booleans(), st.lists(st.tuples(small, small), max_size=4))
def test_gangs_start_whole_in_order_and_never_beyond_what_there_is(
    taken: list[Any], full: bool, mixed: bool, jobs: list[tuple[int, int]]
) -> None:
    async def run() -> None:
        world = World()
        await world.queue("root")
        for name, parent in _QUEUES.items():
            await world.queue(name, parent=parent)
        await world.nodes("3", "2", "1")
        await world.start()
        story = Story(world, mixed=mixed)
        await story.take("lower", _CAPABILITY, 0)
        for number in range(9 if full else 0):
            await story.take("steal", number % 3, 0)
        for one in jobs:
            await story.take("job", *one)
        for step in taken:
            await story.take(*step)
        await story.end_well()
        await world.stop()

    asyncio.run(run())
