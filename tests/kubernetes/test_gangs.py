"""Gangs through an API server, with Kubernetes' own scheduler and the nodes played."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fake_kube_scheduler import KubeScheduler, add_node, room_of

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import EVENT, JOB, NAMESPACE, NODE, POD, POD_GROUP, QUEUE, Kind
from vcjob.api.names import SUSPEND
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType
from vcjob.controller.controller import Controller
from vcjob.core.scheduling.gating import GATE, gated
from vcjob.core.times import timestamp
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.gang_scheduler import GangScheduler
from vcjob.kubernetes.operating import OperatorCluster
from vcjob.kubernetes.server import Server
from vcjob.local.apiserver.server import ApiServer, serve
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins

TOKEN = "for-tests-only"
GRACE = 0.5


class Played:
    """A cluster that only the operator's own parts see through HTTP."""

    def __init__(self) -> None:
        self.store = Store(time.time)
        self.kube = KubeScheduler(self.store)

    async def be_nodes(self) -> None:
        """Run what is bound, end what is deleted."""
        async for event in self.store.watch(POD, "0"):
            pod = event.object
            place = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            if event.type is EventType.DELETED:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                with contextlib.suppress(Exception):  # somebody was faster
                    await self.store.delete(POD, *place, grace_period_seconds=0)
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                await self._tell(place, {"phase": "Running"}, {"running": {}})

    async def end(self, *names: str, exit_code: int = 0) -> None:
        """The programs of pods have ended."""
        ended = {"exitCode": exit_code, "finishedAt": timestamp(time.time())}
        phase = {"phase": "Failed" if exit_code else "Succeeded"}
        for name in names:
            await self._tell(("default", name), phase, {"terminated": ended})

    async def _tell(self, place: tuple[str, str], phase: Object, state: Object) -> None:
        container = {"name": "main", "ready": "running" in state, "restartCount": 0, "state": state}
        status = {"status": {**phase, "containerStatuses": [container]}}
        await self.store.patch(POD, *place, status, subresource="status")

    async def steal(self, name: str, node: str, cpu: str) -> None:
        """Somebody's pod takes room of a node, past every scheduler of ours."""
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
        spec = {"nodeName": node, "containers": [container]}
        await self.store.create(POD, {"metadata": {"name": name}, "spec": spec})

    async def pods(self, job: str = "") -> dict[str, Object]:
        listed = (await self.store.list(POD)).items
        return {pod["metadata"]["name"]: pod for pod in listed
                if pod["metadata"]["name"].startswith(job)}  # fmt: skip

    async def until(
        self, kind: Kind, right: Callable[[list[Object]], bool], seconds: float = 20
    ) -> list[Object]:
        """The objects of a kind, once they are as they should be."""
        async with asyncio.timeout(seconds):
            while True:
                listed = await self.store.list(kind)
                if right(listed.items):
                    return listed.items
                async for _ in self.store.watch(kind, listed.resource_version):
                    break
        raise AssertionError("watches do not end")

    async def job_in(self, name: str, phase: str) -> Object:
        def is_there(jobs: list[Object]) -> bool:
            return any(one["metadata"]["name"] == name and _phase(one) == phase for one in jobs)

        jobs = await self.until(JOB, is_there)
        return next(one for one in jobs if one["metadata"]["name"] == name)


def _phase(job: Object) -> str:
    status = job.get("status") or {}
    return str((status.get("state") or {}).get("phase", ""))


def _is_gated(pod: Object) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ())


def job(name: str, workers: int, cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    tasks = [{"name": "worker", "replicas": workers, "template": template}]
    metadata = {"name": name, "namespace": "default"}
    return apply_defaults({"metadata": metadata, "spec": {"tasks": tasks, **spec}})


@contextlib.asynccontextmanager
async def playing(*nodes: str) -> AsyncIterator[Played]:
    """A cluster of nodes with so many cores, and the operator's parts at work on it."""
    played, plugins = Played(), installed_plugins(third_party=False)
    store = played.store
    for name in ("default", "kube-system"):
        await store.create(NAMESPACE, {"metadata": {"name": name}})
    for name, spec in (("root", {}), ("default", {"parent": "root"})):
        await store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    for number, cpu in enumerate(nodes):
        await add_node(store, f"node-{number}", cpu)
    async with contextlib.AsyncExitStack() as stack:
        api = ApiServer(store, TOKEN, plugins=plugins)
        port = await stack.enter_async_context(serve(api, ssl_context=None))
        server = Server(url=f"http://127.0.0.1:{port}", name="test", token=TOKEN)
        whole = await stack.enter_async_context(KubernetesCluster.of(server))
        cluster = OperatorCluster(whole)
        controller = Controller(cluster, plugins, adapt_pod=gated)
        scheduler = GangScheduler(cluster, cluster.with_all_pods(), grace=GRACE, pause=0.01)
        runs: list[Awaitable[None]] = [
            controller.run(), scheduler.run(), played.kube.run(), played.be_nodes()
        ]  # fmt: skip
        tasks = [asyncio.ensure_future(one) for one in runs]
        try:
            yield played
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
    faults = [one for one in ended if not isinstance(one, asyncio.CancelledError)]
    assert not faults, faults


def test_a_job_starts_whole_and_completes() -> None:
    async def story() -> None:
        async with playing("2", "2") as played:
            await played.store.create(JOB, job("lc", 3))
            await played.job_in("lc", "Running")
            pods = await played.pods("lc")
            assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {"default-scheduler"}
            assert not any(map(_is_gated, pods.values()))
            await played.until(POD_GROUP, lambda groups: groups[0]["status"]["phase"] == "Running")
            await played.end(*pods)
            await played.job_in("lc", "Completed")

    asyncio.run(story())


def test_two_jobs_for_which_there_is_room_one_at_a_time_run_one_after_the_other() -> None:
    async def story() -> None:
        async with playing("2", "2") as played:
            await played.store.create(JOB, job("first", 3))
            await played.job_in("first", "Running")
            await played.store.create(JOB, job("second", 3))
            second = (await played.until(
                JOB, lambda jobs: any("room for 1 of them now" in one.get("status", {}).get(
                    "state", {}).get("message", "") for one in jobs)))[1]  # fmt: skip
            assert (
                "needs room for 3 pods that request cpu 1" in second["status"]["state"]["message"]
            )
            assert not await played.pods("second")
            await played.end(*await played.pods("first"))
            await played.job_in("first", "Completed")
            await played.job_in("second", "Running")

    asyncio.run(story())


def test_a_job_whose_room_was_stolen_gives_all_back_and_starts_later_without_a_retry() -> None:
    async def story() -> None:
        async with playing("2", "2") as played:
            played.kube.pause()
            policies = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
            await played.store.create(JOB, job("lc", 4, policies=policies))
            await played.until(POD, lambda pods: len(pods) == 4 and not any(map(_is_gated, pods)))
            await played.steal("thief", "node-1", "1")
            old = {pod["metadata"]["uid"] for pod in (await played.pods("lc")).values()}
            played.kube.go_on()
            await played.until(
                EVENT, lambda events: any(one["reason"] == "TakenBack" for one in events)
            )
            await played.until(POD, lambda pods: len(pods) == 1)
            [group] = (await played.store.list(POD_GROUP)).items
            assert group["status"]["phase"] == "Pending"
            await played.end("thief")
            running = await played.job_in("lc", "Running")
            assert "retryCount" not in running["status"]
            assert running["status"].get("version", 0) == 0
            assert old.isdisjoint(
                pod["metadata"]["uid"] for pod in (await played.pods("lc")).values()
            )

    asyncio.run(story())


def test_a_restarted_pod_and_a_scaled_up_task_are_let_go_at_once() -> None:
    async def story() -> None:
        async with playing("3") as played:
            policies = [{"event": "PodFailed", "action": "RestartPod"}]
            await played.store.create(JOB, job("lc", 2, policies=policies, minAvailable=2))
            await played.job_in("lc", "Running")
            await played.end("lc-worker-1", exit_code=1)
            await played.until(JOB, lambda jobs: jobs[0]["status"].get("retryCount") == 1
                               and _phase(jobs[0]) == "Running")  # fmt: skip
            spec = (await played.store.get(JOB, "default", "lc"))["spec"]
            tasks = [{**spec["tasks"][0], "replicas": 3}]
            await played.store.patch(JOB, "default", "lc", {"spec": {"tasks": tasks}})
            await played.until(POD, lambda pods: len(pods) == 3 and all(
                pod["status"]["phase"] == "Running" for pod in pods))  # fmt: skip

    asyncio.run(story())


def test_a_suspended_job_gives_its_room_to_another_and_queues_again_when_resumed() -> None:
    async def story() -> None:
        async with playing("2") as played:
            await played.store.create(JOB, job("first", 2))
            await played.job_in("first", "Running")
            await played.store.create(JOB, job("second", 2))
            on: Object = {"metadata": {"annotations": {SUSPEND: "true"}}}
            await played.store.patch(JOB, "default", "first", on)
            await played.job_in("second", "Running")
            await played.job_in("first", "Aborted")
            off: Object = {"metadata": {"annotations": {SUSPEND: None}}}
            await played.store.patch(JOB, "default", "first", off)
            await played.job_in("first", "Pending")
            await played.end(*await played.pods("second"))
            await played.job_in("first", "Running")

    asyncio.run(story())


def test_a_restarted_job_whose_room_went_to_another_says_what_it_waits_for() -> None:
    async def story() -> None:
        async with playing("2") as played:
            policies = [{"event": "PodEvicted", "action": "RestartJob"}]
            await played.store.create(JOB, job("first", 2, policies=policies))
            await played.job_in("first", "Running")
            await played.store.create(JOB, job("another", 2))  # before the new "first" by name
            await played.store.delete(POD, "default", "first-worker-1")
            await played.job_in("another", "Running")

            def told(jobs: list[Object]) -> bool:
                states = [one["status"]["state"] for one in jobs]
                return any(
                    (state["phase"], state.get("reason")) == ("Restarting", "PodGroupPending")
                    and "has room for none of them now" in state["message"]
                    for state in states
                )

            await played.until(JOB, told)
            await played.end(*await played.pods("another"))
            first = await played.job_in("first", "Running")
            assert not first["status"]["state"].get("reason")

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(3))
def test_many_jobs_beside_thieves_all_run_whole_and_end(seed: int) -> None:
    async def story() -> None:
        numbers = random.Random(seed)
        async with playing("4", "3", "2") as played:
            names = [f"job{number}" for number in range(12)]
            for name in names:
                await played.store.create(JOB, job(name, numbers.randint(1, 5)))

            async def steal() -> None:
                for number in range(8):
                    nodes = (await played.store.list(NODE)).items
                    there = (await played.store.list(POD)).items
                    node = numbers.choice(nodes)
                    if room_of(node, there)["cpu"] >= 1:
                        await played.steal(f"thief-{number}", node["metadata"]["name"], "1")
                    await asyncio.sleep(numbers.random() / 10)
                    with contextlib.suppress(Exception):
                        await played.end(f"thief-{number}")

            async def finish() -> None:
                """A Job's pods end once all of it runs, not earlier."""
                while True:
                    for one in (await played.store.list(JOB)).items:
                        pods = await played.pods(f"{one['metadata']['name']}-")
                        running = {name for name, pod in pods.items()
                                   if pod["status"]["phase"] == "Running"}  # fmt: skip
                        if len(running) == one["spec"]["minAvailable"]:
                            await played.end(*running)
                    await asyncio.sleep(0.02)

            tasks = [asyncio.create_task(one) for one in (steal(), finish())]
            await played.until(
                JOB, lambda jobs: all(_phase(one) == "Completed" for one in jobs), seconds=50
            )
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            jobs = (await played.store.list(JOB)).items
            assert not any(one["status"].get("retryCount") for one in jobs)
            assert played.kube.bound >= sum(one["spec"]["minAvailable"] for one in jobs)

    asyncio.run(story())
