"""A whole control plane under a clock that tests move: real store and controller, played pods."""

import asyncio
import heapq
import itertools
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from faults import ControllerCrash

from vcjob.api.kinds import COMMAND, EVENT, JOB, POD, POD_GROUP, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import AlreadyExists, Cluster, NotFound
from vcjob.controller.controller import Controller
from vcjob.core.times import timestamp
from vcjob.local.store import Store
from vcjob.plugins.base import KeyPair
from vcjob.plugins.registry import Registry, installed_plugins

START = 1_700_000_000.0
QUIET_ROUNDS = 12
MOST_ROUNDS = 20_000
"""More than this without time going on, and the controller never comes to rest."""

T = TypeVar("T")


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = START) -> None:
        self._now = now
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def now(self) -> float:
        return self._now

    async def sleep_until(self, when: float) -> None:
        if when <= self._now:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (when, next(self._numbers), future))
        await future

    def steady(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        await self.sleep_until(self._now + seconds)

    def next_wake(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def move_to(self, when: float) -> None:
        self._now = max(when, self._now)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)


class Simulation:
    """Store, controller, and everything that users, scheduler and node do, done by the test."""

    def __init__(
        self,
        registry: Registry | None = None,
        wrap: Callable[[Store], Cluster] = lambda store: store,
        controller_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.controller_options = controller_options or {}
        self.clock = ManualClock()
        numbers = itertools.count(1)
        self.store = Store(
            self.clock.now, new_uid=lambda: f"00000000-0000-4000-8000-{next(numbers):012x}"
        )
        self.cluster = wrap(self.store)
        self.registry = registry or installed_plugins(third_party=False)
        self.controller: Controller | None = None
        self._running: asyncio.Task[None] | None = None
        self.namespace = "default"
        self.key_pairs_made: list[str] = []

    async def make_key_pair(self, algorithm: str) -> KeyPair:
        """A pair that cannot be mistaken for another; not a real one, so that it costs nothing."""
        self.key_pairs_made.append(algorithm)
        await asyncio.sleep(0)  # as other things may happen while real keys are made
        number = len(self.key_pairs_made)
        return KeyPair(f"private {algorithm} {number}", f"public {algorithm} {number}\n")

    async def start(self) -> None:
        """Start a controller (anew)."""
        for name, spec in (("root", {}), ("default", {"parent": "root"})):
            try:
                queue = {"metadata": {"name": name}, "spec": {"weight": 1, **spec}}
                await self.store.create(QUEUE, queue)
            except AlreadyExists:
                continue
        self.controller = Controller(
            self.cluster, self.registry, self.clock, jitter=random.Random(1),
            make_key_pair=self.make_key_pair, **self.controller_options,
        )  # fmt: skip
        self._running = asyncio.create_task(self.controller.run())

    async def crash(self) -> None:
        """End the controller at once; the store stays."""
        assert self._running
        self._running.cancel()
        try:
            await self._running
        except asyncio.CancelledError:
            self._running = self.controller = None

    async def _after_crash(self) -> None:
        """Start anew after a crash that was ordered; anything else is a fault."""
        assert self._running
        running, self._running = self._running, None
        try:
            running.result()
        except BaseExceptionGroup as group:
            _, rest = group.split(ControllerCrash)
            if rest:
                raise
        await self.start()

    async def settle(self, *, finish_pods: bool = True) -> None:
        """Let everything happen that can without the clock moving."""
        while True:
            await self._quiet()
            if not finish_pods or not await self.finish_terminating():
                return

    async def _quiet(self) -> None:
        quiet = 0
        before = -1
        rounds = 0
        while quiet < QUIET_ROUNDS:
            rounds += 1
            assert rounds < MOST_ROUNDS, "the controller does not come to rest"
            await asyncio.sleep(0)
            if self._running and self._running.done():
                await self._after_crash()
            works = self.controller is not None and self.controller.synced
            busy = works and self.controller is not None and len(self.controller.queue) > 0
            now = self.store.version
            quiet = 0 if busy or now != before else quiet + 1
            before = now

    async def advance(self, seconds: float, *, finish_pods: bool = True) -> None:
        """Let time pass, stopping wherever something is due."""
        end = self.clock.now() + seconds
        while (due := self.clock.next_wake()) is not None and due <= end:
            self.clock.move_to(due)
            await self.settle(finish_pods=finish_pods)
        self.clock.move_to(end)
        await self.settle(finish_pods=finish_pods)

    async def finish_terminating(self) -> bool:
        """Play the node: pods under deletion come to their end."""
        terminating = [pod for pod in await self.pods() if "deletionTimestamp" in pod["metadata"]]
        for pod in terminating:
            await self.store.delete(
                POD, pod["metadata"]["namespace"], pod["metadata"]["name"], grace_period_seconds=0
            )
        return bool(terminating)

    async def create_job(self, job: Object) -> Object:
        return await self.store.create(JOB, {**job, "metadata": {"namespace": self.namespace,
                                                                 **job["metadata"]}})  # fmt: skip

    async def job(self, name: str) -> Object:
        return await self.store.get(JOB, self.namespace, name)

    async def status(self, name: str) -> Object:
        status: Object = (await self.job(name)).get("status") or {}
        return status

    async def phase(self, name: str) -> str:
        return str((await self.status(name)).get("state", {}).get("phase", ""))

    async def pods(self) -> list[Object]:
        return (await self.store.list(POD)).items

    async def _pods_of_jobs(self) -> list[Object]:
        return [pod for pod in await self.pods() if pod["metadata"].get("ownerReferences")]

    async def pod_names(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in await self.pods())

    async def events(self) -> list[Object]:
        return (await self.store.list(EVENT)).items

    async def messages(self) -> list[str]:
        return [f"{event['reason']}: {event['message']}" for event in await self.events()]

    async def admit(self, phase: str = "Inqueue", conditions: Any = None) -> None:
        """Play the scheduler: set the phase of every PodGroup of a Job."""
        status: Object = {"phase": phase}
        if conditions:
            status["conditions"] = conditions
        for group in (await self.store.list(POD_GROUP)).items:
            if not group["metadata"].get("ownerReferences"):
                continue
            name = group["metadata"]["name"]
            await self.store.patch(POD_GROUP, self.namespace, name, {"status": status})

    async def run_pod(self, name: str) -> None:
        """Play scheduler and node: bind a pod and have it run."""
        bound = {"spec": {"nodeName": "node"}}
        await self.store.patch(POD, self.namespace, name, bound)
        ready = {"phase": "Running", "containerStatuses": [self._container({"running": {}}, True)]}
        await self._set_status(name, ready)

    async def run_pending(self) -> None:
        for pod in await self._pods_of_jobs():
            if pod["status"]["phase"] == "Pending":
                await self.run_pod(pod["metadata"]["name"])

    async def run_all(self) -> None:
        """Admit what waits, and have all pods run."""
        await self.admit()
        await self.settle()
        await self.run_pending()
        await self.settle()

    async def run_job(self, job: Object) -> None:
        """Create a Job and have all of its pods run."""
        await self.create_job(job)
        await self.settle()
        await self.run_all()

    async def end_pod(self, name: str, exit_code: int = 0) -> None:
        """Play the node: a pod's container has ended."""
        ended = {"terminated": {"exitCode": exit_code, "finishedAt": timestamp(self.clock.now())}}
        phase = "Failed" if exit_code else "Succeeded"
        await self._set_status(
            name, {"phase": phase, "containerStatuses": [self._container(ended, False)]}
        )

    async def end_running(self, exit_code: int = 0) -> None:
        for pod in await self._pods_of_jobs():
            if pod["status"]["phase"] == "Running":
                await self.end_pod(pod["metadata"]["name"], exit_code)

    async def evict_pod(self, name: str) -> None:
        """Play the node: it is short of something, and ends a pod."""
        await self._set_status(name, {"phase": "Failed", "reason": "Evicted"})

    async def preempt_pod(self, name: str) -> None:
        """Play the scheduler: another pod needs the room."""
        condition = {"type": "DisruptionTarget", "status": "True"}
        await self._set_status(name, {"phase": "Failed", "conditions": [condition]})

    async def lose_node(self, name: str) -> None:
        """Play the control plane: nobody knows how a pod is."""
        await self._set_status(name, {"phase": "Unknown"})

    async def restart_containers(self, name: str, count: int, exit_code: int = 1) -> None:
        """Play the node: a container has ended and started again ``count`` times."""
        last = {"terminated": {"exitCode": exit_code, "finishedAt": timestamp(self.clock.now())}}
        container = {**self._container({"running": {}}, True), "lastState": last}
        await self._set_status(name, {"containerStatuses": [{**container, "restartCount": count}]})

    async def delete_pod(self, name: str) -> None:
        await self.store.delete(POD, self.namespace, name)

    async def command(self, job: str, action: str) -> None:
        obj = await self.job(job)
        target = {"apiVersion": JOB.api_version, "kind": "Job", "name": job,
                  "uid": obj["metadata"]["uid"]}  # fmt: skip
        metadata = {"generateName": f"{job}-", "namespace": self.namespace}
        await self.store.create(COMMAND, {"metadata": metadata, "action": action, "target": target})

    async def patch_job(self, name: str, patch: Object) -> None:
        await self.store.patch(JOB, self.namespace, name, patch)

    async def exists(self, kind: Kind, name: str) -> bool:
        try:
            await self.store.get(kind, self.namespace, name)
        except NotFound:
            return False
        return True

    async def _set_status(self, name: str, status: Object) -> None:
        await self.store.patch(POD, self.namespace, name, {"status": status}, subresource="status")

    @staticmethod
    def _container(state: Object, ready: bool) -> Object:
        return {"name": "main", "state": state, "ready": ready, "restartCount": 0}


def simulated(story: Callable[[Simulation], Awaitable[T]], **options: Any) -> T:
    """Run a test's story in a simulation with a running controller."""

    async def tell() -> T:
        simulation = Simulation(**options)
        await simulation.start()
        await simulation.settle()
        try:
            return await story(simulation)
        finally:
            if simulation._running:
                await simulation.crash()

    return asyncio.run(tell())
