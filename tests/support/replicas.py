"""Replicas that contend for a Lease, each with its own clocks, over an API that may misbehave."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

from simulation import START, ManualClock

from vcjob.api.kinds import LEASE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import NotFound, ObjectList, Unavailable, WatchEvent
from vcjob.controller.leading import Leader, Terms
from vcjob.controller.leases import LeaseSpec
from vcjob.local.store import Store

NAMESPACE, NAME = "vcjob-system", "vcjob-operator"
_ROUNDS = 40


class SkewedClock:
    """A clock that is wrong by ``off`` seconds, and whose seconds last ``rate`` true ones."""

    def __init__(self, true: ManualClock, off: float, rate: float) -> None:
        self._true, self._off, self._rate = true, off, rate

    def now(self) -> float:
        return self._true.now() + self._off

    async def sleep_until(self, when: float) -> None:
        await self._true.sleep_until(when - self._off)

    def steady(self) -> float:
        return (self._true.now() - START) / self._rate + 12_345.0

    async def sleep(self, seconds: float) -> None:
        await self._true.sleep(seconds * self._rate)


class Line:
    """One replica's way to the API server: cut, slow on the way there or back, or fine.

    A request that its caller gave up is carried out all the same, as late as it arrives.
    """

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self._store, self._clock = store, clock
        self.cut = False
        self.there = self.back = 0.0
        self.calls = 0
        self._on_the_way: set[asyncio.Task[Object]] = set()

    async def _ask(self, call: Any) -> Object:
        self.calls += 1
        if self.cut:
            raise Unavailable("connection refused")
        request = asyncio.create_task(self._carry_out(call, self.there))
        self._on_the_way.add(request)
        request.add_done_callback(self._forget)
        answer = await asyncio.shield(request)
        await self._clock.sleep(self.back)
        if self.cut:
            raise Unavailable("connection reset")
        return answer

    async def _carry_out(self, call: Any, delay: float) -> Object:
        await self._clock.sleep(delay)
        done: Object = await call()
        return done

    def _forget(self, request: asyncio.Task[Object]) -> None:
        self._on_the_way.discard(request)
        if not request.cancelled():
            request.exception()  # nobody may be there any more to hear of it

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        return await self._ask(lambda: self._store.get(kind, namespace, name))

    async def create(self, kind: Kind, obj: Object) -> Object:
        return await self._ask(lambda: self._store.create(kind, obj))

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Any
    ) -> Object:
        return await self._ask(lambda: self._store.patch(kind, namespace, name, patch, **options))

    async def delete(self, kind: Kind, namespace: str, name: str, **options: Any) -> Object | None:
        return await self._ask(lambda: self._store.delete(kind, namespace, name, **options))

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        raise AssertionError("a Lease is read by name")

    def watch(
        self, kind: Kind, since: str, namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:  # fmt: skip
        raise AssertionError("a Lease is read by name")


class Replica:
    """One process: what it works is told to its world."""

    def __init__(self, world: "Replicas", name: str, clock: SkewedClock, line: Line) -> None:
        self.world, self.name, self.line = world, name, line
        self.leader = Leader(
            line, NAMESPACE, NAME, name, clock, terms=world.terms, jitter=random.Random(name)
        )
        self.task = asyncio.create_task(self.leader.lead(self._work))
        self.lingers = 0.0

    @property
    def works(self) -> bool:
        return self.name in self.world.at_work

    async def _work(self) -> None:
        world = self.world
        world.at_work.add(self.name)
        world.history.append((world.clock.now() - START, self.name))
        if len(world.at_work) > 1:
            world.wrong.append(f"{sorted(world.at_work)} work at once")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if self.lingers:
                await world.clock.sleep(self.lingers)
            world.at_work.discard(self.name)

    async def stop(self) -> None:
        """As on SIGTERM."""
        self.task.cancel()
        await self.world.settle()

    async def crash(self) -> None:
        """As by SIGKILL: nothing more is sent, nothing given back."""
        self.line.cut = True
        self.world.at_work.discard(self.name)
        self.task.cancel()
        await self.world.settle()


class Replicas:
    """Some replicas under one true clock, which tests move."""

    def __init__(self, terms: Terms | None = None) -> None:
        self.terms = terms or Terms()
        self.clock = ManualClock()
        self.store = Store(self.clock.now)
        self.at_work: set[str] = set()
        self.history: list[tuple[float, str]] = []
        self.wrong: list[str] = []
        self.all: list[Replica] = []
        self._numbers = itertools.count()

    def add(self, *, off: float = 0.0, rate: float = 1.0) -> Replica:
        """Start one more."""
        name = f"replica-{next(self._numbers)}"
        line = Line(self.store, self.clock)
        self.all.append(Replica(self, name, SkewedClock(self.clock, off, rate), line))
        return self.all[-1]

    async def settle(self) -> None:
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass, stopping wherever something is due."""
        await self.settle()
        end = self.clock.now() + seconds
        while (due := self.clock.next_wake()) is not None and due <= end:
            self.clock.move_to(due)
            await self.settle()
        self.clock.move_to(end)
        await self.settle()

    async def until_somebody_works(self, most: float = 60.0) -> float:
        """How long (s) it takes."""
        began = self.clock.now()
        while not self.at_work:
            assert self.clock.now() - began < most, "nobody takes over"
            due = self.clock.next_wake()
            assert due is not None
            self.clock.move_to(due)
            await self.settle()
        return self.clock.now() - began

    async def lease(self) -> LeaseSpec:
        try:
            return LeaseSpec.of(await self.store.get(LEASE, NAMESPACE, NAME))
        except NotFound:
            return LeaseSpec()

    async def end(self) -> None:
        for replica in self.all:
            replica.line.cut = True
            replica.task.cancel()
        await self.advance(60)
        await asyncio.gather(*(one.task for one in self.all), return_exceptions=True)
