"""Gangs on this machine, whatever jobs, pods, ends and deletions come in which order.

Pods ask for whole CPUs, so that how much fits can be counted by anybody.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.api.kinds import POD, POD_GROUP, QUEUE
from vcjob.api.names import GROUP_NAME, QUEUE_NAME, TASK_SPEC
from vcjob.api.types import Object
from vcjob.core.scheduling.requests import new_queue
from vcjob.local.scheduler import Scheduler
from vcjob.local.store import Store

CPUS = 5
LIMITS = {"upper": 4, "lower": 3, "other": 3}
QUEUES = {"upper": "root", "lower": "upper", "other": "upper", "ordered": "root"}
small = st.integers(0, 7)
steps = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "job",
                "job",
                "pods",
                "pods",
                "end",
                "delete",
                "restart",
                "again",
                "gone",
                "regroup",
                "crash",
            )
        ),
        small,
        small,
    ),
    max_size=30,
)


@dataclass
class Gang:
    """A Job that was drawn. It was ``whole`` once its minimum had started."""

    size: int
    least: int
    queue: str
    cpus: int
    whole: bool = False
    done: bool = False


class Story:
    """What happens on a machine, and what must hold after each step."""

    def __init__(self) -> None:
        self._now = count(1_000_000_000)
        self.store = Store(self._clock)
        self.gangs: dict[str, Gang] = {}
        self.groups: dict[str, Object] = {}
        self._running: asyncio.Task[None] | None = None

    def _clock(self) -> float:
        return float(next(self._now))

    async def begin(self) -> None:
        scheduler = Scheduler(self.store, {"cpu": str(CPUS)}, node="here", clock=self._clock)
        self._running = asyncio.create_task(scheduler.run())
        await self.settle()

    async def stop(self) -> None:
        assert self._running
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def settle(self) -> None:
        """Until every watch has seen everything: no request to the store ever waits."""
        for _ in range(30):
            await asyncio.sleep(0)

    async def take(self, step: str, first: int, second: int) -> None:
        act: Callable[[int, int], Awaitable[None]] = getattr(self, f"_{step}")
        await act(first, second)
        await self.settle()
        await self.check()

    async def _job(self, first: int, second: int) -> None:
        queue = ("lower", "other", "ordered", "default")[first // 4 + second // 4 * 2]
        size = min(first % 4 + 1, LIMITS.get(queue, CPUS))
        name, least = f"j{len(self.gangs)}", size - second % size
        cpus = 2 if size == 1 else 1
        self.gangs[name] = Gang(size, least, queue, cpus)
        needs = {"cpu": str(least * cpus)}
        spec = {"minMember": least, "queue": queue, "minResources": needs,
                "minTaskMember": {"w": least}}  # fmt: skip
        self.groups[name] = {"metadata": {"name": name}, "spec": spec}
        await self.store.create(POD_GROUP, self.groups[name])

    async def _again(self, number: int, _: int) -> None:
        """A whole Job is restarted: its pods take their time to go."""
        name = f"j{number}"
        if name in self.gangs and not self.gangs[name].done:
            await self._regroup(number, 0)
            self.gangs[name].whole = False
            for pod in await self.of(name):
                await self.store.delete(POD, "default", pod)

    async def _regroup(self, number: int, _: int) -> None:
        """Somebody deletes a PodGroup; the controller makes it anew."""
        name = f"j{number}"
        if name in self.gangs and not self.gangs[name].done:
            await self.store.delete(POD_GROUP, "default", name)
            await self.settle()
            await self.store.create(POD_GROUP, self.groups[name])

    async def _gone(self, *_: int) -> None:
        """What was to go is gone."""
        for pod in (await self.store.list(POD)).items:
            if not _stays(pod):
                name = pod["metadata"]["name"]
                await self.store.delete(POD, "default", name, grace_period_seconds=0)

    async def _pods(self, first: int, number: int) -> None:
        """Be the controller: some pods of admitted gangs that are not there are made."""
        for name in list(self.gangs)[first % 2 :]:
            gang = self.gangs[name]
            there = await self.of(name)
            missing = [index for index in range(gang.size) if f"{name}-{index}" not in there]
            going = not all(map(_stays, there.values()))
            if gang.done or going or await self.phase(name) in ("", "Pending"):
                continue
            for index in missing[: number + 1]:
                requests = {"cpu": str(gang.cpus)}
                container = {"name": "main", "resources": {"requests": requests}}
                metadata = {"name": f"{name}-{index}",
                            "annotations": {GROUP_NAME: name, TASK_SPEC: "w",
                                            QUEUE_NAME: gang.queue}}  # fmt: skip
                await self.store.create(
                    POD, {"metadata": metadata, "spec": {"containers": [container]}}
                )
            await self.settle()

    async def _end(self, *_: int) -> None:
        """Pods come to their end once the minimum has started; who has none left is gone."""
        for name, gang in self.gangs.items():
            pods = await self.of(name)
            started = [one for one, pod in pods.items() if _has_started(pod)]
            if gang.done or len(started) < gang.least:
                continue
            for one in started:
                status = {"status": {"phase": "Succeeded"}}
                await self.store.patch(POD, "default", one, status, subresource="status")
            if len(started) == gang.size:
                gang.done = True
                await self.store.delete(POD_GROUP, "default", name)

    async def _delete(self, number: int, index: int) -> None:
        """Somebody deletes a pod."""
        if f"j{number}-{index}" in await self.of(f"j{number}"):
            await self.store.delete(POD, "default", f"j{number}-{index}", grace_period_seconds=0)

    async def _restart(self, first: int, second: int) -> None:
        """A pod is deleted and made anew, at some time later, or at once."""
        await self._delete(first, second)
        if (first + second) % 2:
            await self.settle()
        await self._pods(0, 7)

    async def _crash(self, *_: int) -> None:
        await self.stop()
        await self.begin()

    async def phase(self, name: str) -> str:
        status = (await self.store.get(POD_GROUP, "default", name)).get("status") or {}
        return str(status.get("phase", ""))

    async def of(self, name: str) -> dict[str, Object]:
        pods = (await self.store.list(POD)).items
        return {pod["metadata"]["name"]: pod for pod in pods
                if pod["metadata"]["annotations"][GROUP_NAME] == name}  # fmt: skip

    async def check(self) -> None:
        used = dict.fromkeys(("root", *QUEUES, "default"), 0)
        for name, gang in self.gangs.items():
            pods = (await self.of(name)).values()
            started = sum(map(_has_started, pods))
            assert gang.whole or not started or started >= gang.least, "started in part"
            gang.whole |= started >= gang.least
            used[gang.queue] += gang.cpus * sum(map(_takes_room, pods))
        used["upper"] += used["lower"] + used["other"]
        for queue, limit in LIMITS.items():
            assert used[queue] <= limit, f"queue {queue} has more than it may"
        everything = used["upper"] + used["ordered"] + used["default"]
        assert everything <= CPUS

    async def end_well(self) -> None:
        """Every gang comes to its end: none keeps another from it for ever."""
        for _ in range(4 * len(self.gangs) + 2):
            for step in ("gone", "pods", "end"):
                await self.take(step, 0, 7)
        assert all(gang.done for gang in self.gangs.values())


def _takes_room(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] != "Succeeded"


def _stays(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _has_started(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and _stays(pod)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_gangs_start_whole_within_their_queues_and_all_come_to_their_end(taken: list[Any]) -> None:
    async def run() -> None:
        story = Story()
        for name, parent in QUEUES.items():
            spec: Object = {"parent": parent}
            if name in LIMITS:
                spec["capability"] = {"cpu": str(LIMITS[name])}
            if name == "ordered":
                spec["dequeueStrategy"] = "fifo"
            await story.store.create(QUEUE, new_queue(name, spec))
        await story.begin()
        for step in taken:
            await story.take(*step)
        await story.end_well()
        await story.stop()

    asyncio.run(run())
