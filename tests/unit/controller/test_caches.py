"""Lists and watches that fail: nothing is decided on half the truth, and all goes on by itself."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from faults import Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import COMMAND, CONFIG_MAP, JOB, POD, POD_GROUP, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.caches import Caches
from vcjob.controller.cluster import (
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ObjectList,
    Unavailable,
    WatchEvent,
)
from vcjob.controller.records import Records
from vcjob.core.facts import PodPhase
from vcjob.local.store import Store


class Refused(ClusterError):
    """A kind of failure that nobody has thought of."""


ERRORS = (
    Refused("401"), Forbidden("cannot list"), NotFound("not served"), Unavailable("away"),
    Invalid("broken"), Conflict("?"), Gone("too old"),
)  # fmt: skip


class Refusing(Faulty):
    """Lists and watches of some kinds fail; all of them are counted."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.lists: dict[Kind, ClusterError] = {}
        self.watches: dict[Kind, ClusterError | None] = {}
        self.listed: list[Kind] = []
        self.asked_at: list[float] = []
        self.now: Any = None
        self._open: list[asyncio.Event] = []

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        self.listed.append(kind)
        await asyncio.sleep(0)  # others have a turn, as over any network
        if kind in self.lists:
            raise self.lists[kind]
        return await super().list(kind, namespace, labels)

    async def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        if kind in self.watches:
            self.asked_at.append(self.now())
            if error := self.watches[kind]:
                raise error
            return
        following = super().watch(kind, since, namespace, labels)
        broken = asyncio.Event()
        self._open.append(broken)
        breaking = asyncio.ensure_future(broken.wait())
        try:
            while True:
                event = asyncio.ensure_future(anext(following))
                await asyncio.wait({event, breaking}, return_when=asyncio.FIRST_COMPLETED)
                if breaking.done():
                    event.cancel()
                    raise Unavailable("the stream broke")
                yield event.result()
        finally:
            breaking.cancel()

    def break_watches(self) -> None:
        for one in self._open:
            one.set()
        self._open.clear()


def job(replicas: int = 2, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    return apply_defaults(
        {"metadata": {"name": "lc"}, "spec": {"tasks": [task], "policies": policies, **spec}}
    )


async def running(world: Simulation) -> Refusing:
    cluster = world.cluster
    assert isinstance(cluster, Refusing)
    cluster.now = world.clock.now
    await world.run_job(job())
    return cluster


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pods_that_cannot_be_listed_are_not_taken_for_gone(error: ClusterError) -> None:
    async def story(world: Simulation) -> None:
        cluster = await running(world)
        uids = [pod["metadata"]["uid"] for pod in await world.pods()]
        await world.crash()
        cluster.lists[POD] = error
        await world.start()
        await world.advance(300)
        assert world.controller is not None
        assert not world.controller.synced
        assert world.controller.troubles == {POD: f"cannot list pods: {error}"}
        assert await world.phase("lc") == "Running"
        await world.end_pod("lc-worker-0")
        cluster.lists.clear()
        await world.advance(31)
        assert world.controller.synced
        assert world.controller.troubles == {}
        assert [pod["metadata"]["uid"] for pod in await world.pods()] == uids
        assert (await world.status("lc"))["succeeded"] == 1

    simulated(story, wrap=Refusing)


@pytest.mark.parametrize("kind", [QUEUE, JOB, COMMAND, POD_GROUP, CONFIG_MAP], ids=str)
def test_a_controller_that_starts_without_a_kind_begins_when_it_is_there(kind: Kind) -> None:
    async def story(world: Simulation) -> None:
        cluster = world.cluster
        assert isinstance(cluster, Refusing)
        await world.crash()
        cluster.lists[kind] = NotFound("the server does not serve it")
        await world.start()
        await world.create_job(job())
        await world.advance(120)
        assert await world.phase("lc") == ""
        cluster.lists.clear()
        await world.advance(31)
        assert await world.phase("lc") == "Pending"

    simulated(story, wrap=Refusing)


def test_what_was_listed_before_a_long_trouble_is_listed_again() -> None:
    """A Job's status may tell of pods that came after the list of pods."""

    async def story(world: Simulation) -> None:
        cluster = await running(world)
        await world.crash()
        cluster.lists[JOB] = Unavailable("away")
        cluster.listed.clear()
        await world.start()
        await world.advance(60)
        cluster.lists.clear()
        await world.advance(31)
        last = {kind: at for at, kind in enumerate(cluster.listed)}
        assert last[JOB] < last[POD]

    simulated(story, wrap=Refusing)


def test_nobody_is_let_go_before_what_is_listed_again() -> None:
    async def story(world: Simulation) -> None:
        cluster = await running(world)
        await world.crash()
        cluster.lists[JOB] = Unavailable("away")
        caches = Caches(cluster, Records(lambda uid: None), world.clock, random.Random(0))
        let_go: list[bool] = []

        async def wait() -> None:
            await caches.until_synced()
            let_go.append(caches.synced)

        work = [asyncio.create_task(caches.keep_up()), asyncio.create_task(wait())]
        await world.advance(60)
        assert let_go == []
        cluster.lists.clear()
        await world.advance(31)
        assert let_go == [True]
        for one in work:
            one.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    simulated(story, wrap=Refusing)


@pytest.mark.parametrize("error", [*ERRORS[:6], None], ids=lambda error: type(error).__name__)
def test_a_watch_is_tried_again_quickly_at_first_and_then_every_half_minute(
    error: ClusterError | None,
) -> None:
    async def story(world: Simulation) -> None:
        cluster = await running(world)
        cluster.watches[POD] = error
        cluster.break_watches()
        await world.settle()
        await world.advance(400)
        waits = [b - a for a, b in zip(cluster.asked_at, cluster.asked_at[1:], strict=False)]
        assert waits, "it is tried again"
        assert waits[0] < 1
        assert 5 < len(waits) < 60, "it is not tried all the time"
        assert max(waits) <= 31
        await world.end_pod("lc-worker-0")
        cluster.watches.clear()
        await world.advance(40)
        assert (await world.status("lc"))["succeeded"] == 1
        await world.advance(20)
        assert world.controller is not None
        assert world.controller.troubles == {}

    simulated(story, wrap=Refusing)


def test_a_watch_that_breaks_can_be_read_of_and_other_kinds_go_on() -> None:
    async def story(world: Simulation) -> None:
        cluster = await running(world)
        cluster.watches[QUEUE] = cluster.lists[QUEUE] = Forbidden("cannot watch resource")
        cluster.break_watches()
        await world.settle()
        await world.advance(0.3)
        assert world.controller is not None
        assert world.controller.troubles[QUEUE] == "cannot watch queues: cannot watch resource"
        await world.advance(1)
        await world.end_pod("lc-worker-0")
        await world.settle()
        assert (
            world.controller.records.by_uid[
                (await world.job("lc"))["metadata"]["uid"]
            ].observed.counts()[PodPhase.SUCCEEDED]
            == 1
        ), "pods are still followed"

    simulated(story, wrap=Refusing)


def test_a_break_of_all_watches_costs_no_list() -> None:
    async def story(world: Simulation) -> None:
        cluster = await running(world)
        cluster.listed.clear()
        for _ in range(5):
            cluster.break_watches()
            await world.advance(1)
            for index in range(2):  # so that each kind has news in between
                await world.patch_job("lc", {"metadata": {"annotations": {"n": str(index)}}})
            await world.advance(60)
        assert JOB not in cluster.listed

    simulated(story, wrap=Refusing)


def test_how_long_a_server_asks_us_to_wait_is_waited() -> None:
    async def story(world: Simulation) -> None:
        cluster = await running(world)
        cluster.watches[POD] = Unavailable("too many requests", 45.0)
        cluster.break_watches()
        await world.settle()
        await world.advance(40)
        assert len(cluster.asked_at) == 1
        await world.advance(10)
        assert len(cluster.asked_at) == 2

    simulated(story, wrap=Refusing)
