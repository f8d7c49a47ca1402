"""The operator's cluster over an API server: much of everything, and everything that goes wrong."""

import asyncio
import contextlib
import random
import tracemalloc
from collections import Counter
from typing import Any

import msgspec
import pytest
from full_pods import full_pod
from losing_proxy import FAULTS, losing_proxy
from served import TOKEN, served

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, POD
from vcjob.controller.cluster import AlreadyExists, EventType, NotFound
from vcjob.controller.parallel import for_each
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.operating import OperatorCluster
from vcjob.kubernetes.pacing import Limits
from vcjob.kubernetes.retrying import Patience
from vcjob.kubernetes.server import Server
from vcjob.local.store import Store

LOSSES = tuple(fault for fault in FAULTS if fault != "sent twice")
STUBBORN = Patience(tries=50, first=0.001, longest=0.001)
MEGABYTE = 1_000_000


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


SPEC = {"containers": [{"name": "main", "image": "busybox"}]}


async def new_job(store: Store, name: str = "mnist") -> str:
    """The UID of a new Job; pods of Jobs that are not there would not stay."""
    task = {"name": "worker", "replicas": 1, "template": {"spec": SPEC}}
    job = {"metadata": {"name": name, "namespace": "default"}, "spec": {"tasks": [task]}}
    stored = await store.create(JOB, apply_defaults(job))
    return str(stored["metadata"]["uid"])


def new_pod(name: str, owner: str) -> dict[str, Any]:
    """A pod as a controller creates it."""
    metadata = full_pod()["metadata"]
    kept = {key: metadata[key] for key in ("namespace", "labels", "annotations")}
    owners = [{**metadata["ownerReferences"][0], "uid": owner}]
    return {"metadata": {"name": name, **kept, "ownerReferences": owners}, "spec": SPEC}


def test_ten_thousand_pods_never_stand_in_memory_as_a_whole() -> None:
    count = 10_000

    async def story() -> None:
        store = Store(lambda: 1_800_000_000.0)
        async with served(store=store) as api:
            owner = await new_job(store)
            for index in range(count):
                pod = full_pod(index)
                pod["metadata"]["ownerReferences"][0]["uid"] = owner
                await store.create(POD, pod)
            server = Server(url=api.url, name="test", token=TOKEN)
            async with KubernetesCluster.of(server) as plain:
                tracemalloc.start()
                try:
                    pods = (await OperatorCluster(plain).list(POD)).items
                    kept, most = tracemalloc.get_traced_memory()
                finally:
                    tracemalloc.stop()
        assert len(pods) == count
        # Whole pods would be 15 KB each. What the server itself needs for a page counts, too.
        assert kept < 40 * MEGABYTE
        assert most < 80 * MEGABYTE

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_lost_or_repeated_everything_is_made_and_deleted_once(seed: int) -> None:
    count = 150

    async def story() -> None:
        store = Store(lambda: 1_800_000_000.0)
        async with (
            served(store=store) as api,
            losing_proxy(api.url, random.Random(seed), 0.4) as (url, faults),
            KubernetesCluster.of(Server(url=url, name="test", token=TOKEN)) as plain,
        ):
            limits = Limits(at_once=8)
            cluster = OperatorCluster(plain, limits=limits, patience=STUBBORN, sleep=at_once)
            owner = await new_job(store)
            uids: dict[int, str] = {}

            async def create(index: int) -> None:
                try:
                    stored = await cluster.create(POD, new_pod(f"mnist-worker-{index}", owner))
                except AlreadyExists:
                    stored = await cluster.get(POD, "default", f"mnist-worker-{index}")
                assert stored["metadata"]["ownerReferences"][0]["uid"] == owner
                uids[index] = stored["metadata"]["uid"]

            async def remove(index: int) -> None:
                name = f"mnist-worker-{index}"
                with contextlib.suppress(NotFound):  # the proxy, not we, sent it twice
                    await cluster.delete(
                        POD, "default", name, uid=uids[index], grace_period_seconds=0
                    )

            assert not await for_each(range(count), create, at_once=16)
            assert len((await store.list(POD)).items) == count
            assert not await for_each(range(0, count, 2), remove, at_once=16)
            left = {pod["metadata"]["uid"] for pod in (await store.list(POD)).items}
            assert left == {uids[index] for index in range(1, count, 2)}
            happened: Counter[EventType] = Counter()
            async for event in store.watch(POD, "0"):
                happened[event.type] += 1
                if happened.total() == count + count // 2:
                    break
            assert happened == {EventType.ADDED: count, EventType.DELETED: count // 2}
        assert all(faults[fault] for fault in FAULTS), faults

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(3))
def test_a_count_in_a_status_is_raised_exactly_once_each_time(seed: int) -> None:
    async def story() -> None:
        store = Store(lambda: 1_800_000_000.0)
        async with (
            served(store=store) as api,
            losing_proxy(api.url, random.Random(seed), 0.4, LOSSES) as (url, faults),
            KubernetesCluster.of(Server(url=url, name="test", token=TOKEN)) as plain,
        ):
            cluster = OperatorCluster(plain, patience=STUBBORN, sleep=at_once)
            await new_job(store)
            for raised in range(100):
                job = await cluster.get(JOB, "default", "mnist")
                before = job.get("status", {}).get("retryCount", 0)
                assert before == raised, "what was said to have been written was"
                now = job["metadata"]
                stored = await cluster.patch(
                    JOB, "default", "mnist", {"status": {"retryCount": before + 1}},
                    subresource="status", uid=now["uid"], resource_version=now["resourceVersion"],
                )  # fmt: skip
                assert stored["status"]["retryCount"] == raised + 1
        assert all(faults[fault] for fault in LOSSES), faults

    asyncio.run(story())


def test_three_pods_of_a_small_job_do_not_wait_for_those_of_a_huge_one() -> None:
    count = 400

    async def story() -> None:
        store = Store(lambda: 1_800_000_000.0)
        async with served(store=store) as api:
            server = Server(url=api.url, name="test", token=TOKEN)
            async with KubernetesCluster.of(server) as plain:
                cluster = OperatorCluster(plain, limits=Limits(at_once=4))
                owners = {name: await new_job(store, name) for name in ("huge", "small")}

                async def create(job: str, index: int) -> None:
                    await cluster.create(POD, new_pod(f"{job}-{index}", owners[job]))

                async with asyncio.TaskGroup() as group:
                    for index in range(count):
                        group.create_task(create("huge", index))
                    await asyncio.sleep(0)
                    for index in range(3):
                        group.create_task(create("small", index))
            order = [pod["metadata"] for pod in (await store.list(POD)).items]
            order.sort(key=lambda metadata: int(metadata["resourceVersion"]))
            places = [place for place, one in enumerate(order) if one["name"].startswith("small")]
            assert len(order) == count + 3
            assert places[-1] < 20

    asyncio.run(story())


def test_the_trimmed_answer_of_a_create_is_what_the_watch_tells() -> None:
    async def story() -> None:
        store = Store(lambda: 1_800_000_000.0)
        async with served(store=store) as api:
            pod = new_pod("mnist-worker-0", await new_job(store))
            server = Server(url=api.url, name="test", token=TOKEN)
            async with KubernetesCluster.of(server) as plain:
                cluster = OperatorCluster(plain)
                since = (await cluster.list(POD)).resource_version
                stored = await cluster.create(POD, pod)
                watch = cluster.watch(POD, since)
                event = await anext(watch)
                await watch.aclose()
                assert event.object == stored
                assert len(msgspec.json.encode(stored)) < 1500

    asyncio.run(story())
