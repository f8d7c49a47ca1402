"""The scheduler of gangs on the real store, under a clock that tests move; the rest is played."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fake_kube_scheduler import KubeScheduler, add_node
from simulation import ManualClock

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, POD, POD_GROUP, QUEUE, Kind
from vcjob.api.names import pod_group_name
from vcjob.api.types import Job, Object
from vcjob.controller.cluster import Cluster, Forbidden
from vcjob.core.blueprint import Blueprint
from vcjob.core.scheduling.gating import gated
from vcjob.core.scheduling.requests import new_queue
from vcjob.kubernetes.gang_scheduler import GangScheduler
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins

PLUGINS = installed_plugins(third_party=False)
GRACE = 60.0
_MOST_TURNS = 5_000


def task(
    name: str, replicas: int, cpu: str = "1", *, least: int | None = None, **spec: Any
) -> Object:
    container: Object = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], **spec}}
    made: Object = {"name": name, "replicas": replicas, "template": template}
    if least is not None:
        made["minAvailable"] = least
    return made


class World:
    """A store, the scheduler of gangs, and shorthands for what others do."""

    def __init__(self, wrap: Callable[[Store], Cluster] = lambda store: store) -> None:
        self.clock = ManualClock()
        self.store = Store(self.clock.now)
        self.cluster = wrap(self.store)
        self.kube = KubeScheduler(self.store)
        self.blueprints: dict[str, Blueprint] = {}
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.scheduler = GangScheduler(self.cluster, self.store, self.clock, grace=GRACE, pause=0)
        self._running = asyncio.create_task(self.scheduler.run())
        await self.settle()

    async def stop(self) -> None:
        assert self._running
        assert not self._running.done(), self._running.exception()
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def settle(self) -> None:
        """Until nothing more happens without the clock moving."""
        quiet, before = 0, -1
        for _ in range(_MOST_TURNS):
            await asyncio.sleep(0)
            now = self.store.version
            quiet = 0 if now != before else quiet + 1
            before = now
            if quiet == 20:
                return
        raise AssertionError("what is done and undone goes round without end")

    async def advance(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while (due := self.clock.next_wake()) is not None and due <= end:
            self.clock.move_to(due)
            await self.settle()
        self.clock.move_to(end)
        await self.settle()

    async def bind(self) -> int:
        """Let Kubernetes' scheduler do what it can."""
        bound = await self.kube.turn()
        await self.settle()
        return bound

    async def nodes(self, *cpus: str, **spec: Any) -> None:
        for number, cpu in enumerate(cpus):
            await add_node(self.store, f"node-{number}", cpu, **spec)
        await self.settle()

    async def queue(self, name: str, **spec: Any) -> None:
        await self.store.create(QUEUE, new_queue(name, spec))
        await self.settle()

    async def job(self, name: str, *tasks: Object, pods: bool = True, **spec: Any) -> None:
        """A Job as its controller makes it, with its pods once it is admitted."""
        made = apply_defaults({"metadata": {"name": name}, "spec": {"tasks": list(tasks), **spec}})
        # Jobs may get past admission: then a minimum of 0 is none.
        job = await self.store.create(JOB, {**made, "spec": {**made["spec"], **spec}})
        self.blueprints[name] = blueprint = Blueprint(Job.of(job), PLUGINS)
        await self.store.create(POD_GROUP, blueprint.pod_group())
        await self.settle()
        if pods and await self.phase(name) == "Inqueue":
            await self.pods(name)

    async def pods(self, name: str, most: int = 1000) -> None:
        """Make the pods of a Job that are not there, not too many at once."""
        there = await self.all_pods()
        lacking = [
            pod for pod in self.blueprints[name].pods() if pod["metadata"]["name"] not in there
        ]
        for pod in lacking[:most]:
            await self.store.create(POD, gated(pod))
        await self.settle()

    async def foreign(self, name: str, node_name: str, cpu: str) -> None:
        """A pod of somebody else that runs."""
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        spec = {"containers": [container], "nodeName": node_name}
        await self.store.create(POD, {"metadata": {"name": name}, "spec": spec})
        await self.settle()

    async def turns(self, phase: str, *pods: str) -> None:
        for pod in pods:
            status = {"status": {"phase": phase}}
            await self.store.patch(POD, "default", pod, status, subresource="status")
        await self.settle()

    async def all_pods(self) -> dict[str, Object]:
        return {pod["metadata"]["name"]: pod for pod in (await self.store.list(POD)).items}

    async def let_go(self) -> set[str]:
        return {name for name, pod in (await self.all_pods()).items()
                if not pod["spec"].get("schedulingGates")}  # fmt: skip

    async def group(self, job: str) -> Object:
        obj = await self.store.get(JOB, "default", job)
        return await self.store.get(
            POD_GROUP, "default", pod_group_name(job, obj["metadata"]["uid"])
        )

    async def status(self, job: str) -> Object:
        status: Object = (await self.group(job)).get("status") or {}
        return status

    async def phase(self, job: str) -> str:
        return str((await self.status(job)).get("phase", ""))

    async def told(self, job: str) -> tuple[str, str]:
        condition = (await self.status(job))["conditions"][-1]
        return condition["reason"], condition["message"]

    async def finish_leaving(self) -> None:
        """Be the nodes: pods under deletion end."""
        for pod in (await self.all_pods()).values():
            if "deletionTimestamp" in pod["metadata"]:
                place = ("default", pod["metadata"]["name"])
                await self.store.delete(POD, *place, grace_period_seconds=0)
        await self.settle()


Scenario = Callable[[World], Coroutine[Any, Any, None]]


def play(scenario: Scenario, wrap: Callable[[Store], Cluster] = lambda store: store) -> None:
    async def run() -> None:
        world = World(wrap)
        for name, spec in (("root", {}), ("default", {"parent": "root"})):
            await world.queue(name, **spec)
        await world.start()
        await scenario(world)
        await world.stop()

    asyncio.run(run())


class Refusing:
    """A cluster that refuses writes of a kind; ``refused`` counts them.

    ``prefix`` is how names of the objects begin that are meant.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.kind: Kind | None = None
        self.prefix = ""
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    async def patch(self, kind: Kind, *place: str, **more: Any) -> Object:
        if kind is self.kind and place[1].startswith(self.prefix):
            self.refused += 1
            raise Forbidden("no right")
        return await self.cluster.patch(kind, *place, **more)
