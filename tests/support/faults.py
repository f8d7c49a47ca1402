"""A cluster that fails on purpose, at a chosen write; and watches that misbehave."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Any

from vcjob.api.kinds import EVENT, JOB, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    Conflict,
    EventType,
    NotFound,
    ObjectList,
    Unavailable,
    WatchEvent,
)
from vcjob.local.store import Store


class ControllerCrash(BaseException):
    """The controller dies here."""


class Fault(StrEnum):
    """What happens at a write."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    CONFLICT = "conflict"
    NOT_FOUND = "not found"
    ALREADY_EXISTS = "already exists"
    THROTTLED = "throttled"
    LOST_ANSWER = "time-out after success"
    SUCCEEDED_BY_NAMESAKE = "another object of that name, just before"


ONE_OBJECT = [fault for fault in Fault if fault is not Fault.SUCCEEDED_BY_NAMESAKE]
"""Faults that change nothing in the end, as all objects stay those that they were."""


class Faulty:
    """A ``Cluster`` over a store. ``at`` counts writes down to the one that gets ``fault``.

    While ``held``, watches deliver nothing. With ``repeating`` they deliver each event twice, and
    the one before once more. ``before_create``, ``before_patch`` and ``before_delete`` are asked at
    each of these writes. ``foreign`` gets the namesakes that came in between, Jobs aside, and
    ``replaced`` how many of which kind there were; ``hurt`` tells of those that got the write which
    was meant for the object before.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.fault: Fault | None = None
        self.at = 0
        self._kind: Kind | None = None
        self.writes = 0
        self.repeating = False
        self._free = asyncio.Event()
        self._free.set()
        self.foreign: list[tuple[Kind, Object]] = []
        self.replaced: Counter[Kind] = Counter()
        self.hurt: list[str] = []
        self.before_create: list[Any] = []
        self.before_patch: list[Any] = []
        self.before_delete: list[Any] = []

    @property
    def held(self) -> bool:
        return not self._free.is_set()

    def hold(self, held: bool) -> None:
        if held:
            self._free.clear()
        else:
            self._free.set()

    def arm(self, fault: Fault | None, at: int = 0, kind: Kind | None = None) -> None:
        """Have a fault at a later write, if ``kind`` is given at one of that kind."""
        self.fault, self.at, self._kind = fault, at, kind

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        return await self.store.get(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        return await self.store.list(kind, namespace, labels)

    async def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        last: WatchEvent | None = None
        async for event in self.store.watch(kind, since, namespace, labels):
            await self._free.wait()
            yield event
            if self.repeating:
                if last is not None and last.type is not EventType.DELETED:
                    yield last
                yield event
            last = event

    async def create(self, kind: Kind, obj: Object) -> Object:
        for check in self.before_create:
            await check(kind, obj)
        fault = self._next_fault(kind)
        _before(fault, "create")
        return _after(fault, await self.store.create(kind, obj))

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Any
    ) -> Object:
        for check in self.before_patch:
            await check(kind, name, patch)
        fault = self._next_fault(kind)
        _before(fault, "patch")
        async with self._namesake(fault, kind, namespace, name):
            stored = await self.store.patch(kind, namespace, name, patch, **options)
        return _after(fault, stored)

    async def delete(self, kind: Kind, namespace: str, name: str, **options: Any) -> None:
        for check in self.before_delete:
            await check(kind, namespace, name)
        fault = self._next_fault(kind)
        _before(fault, "delete")
        async with self._namesake(fault, kind, namespace, name):
            await self.store.delete(kind, namespace, name, **options)
        _after(fault, {})

    @contextlib.asynccontextmanager
    async def _namesake(
        self, fault: Fault | None, kind: Kind, namespace: str, name: str
    ) -> AsyncIterator[None]:
        """If it is that fault, the object makes way for a namesake, which has to stay as it is."""
        successor = None
        if fault is Fault.SUCCEEDED_BY_NAMESAKE:
            successor = await self._succeed(kind, namespace, name)
        try:
            yield
        finally:
            if successor and not await self._is_there(kind, successor):
                self.hurt.append(f"{kind} {name} got what was meant for the one before it")

    async def _succeed(self, kind: Kind, namespace: str, name: str) -> Object | None:
        try:
            there = await self.store.get(kind, namespace, name)
        except NotFound:
            return None
        metadata = {"name": name, "namespace": namespace}
        if kind == JOB:
            metadata["annotations"] = there["metadata"].get("annotations", {})
        await self.store.delete(kind, namespace, name, grace_period_seconds=0)
        body = {"metadata": metadata, **({"spec": there["spec"]} if "spec" in there else {})}
        successor = await self.store.create(kind, body)
        self.replaced[kind] += 1
        if kind not in (JOB, QUEUE):  # queues belong to nobody
            self.foreign.append((kind, successor))
        return successor

    async def _is_there(self, kind: Kind, obj: Object) -> bool:
        metadata = obj["metadata"]
        try:
            return (
                await self.store.get(kind, metadata.get("namespace", ""), metadata["name"]) is obj
            )
        except NotFound:
            return False

    def _next_fault(self, kind: Kind) -> Fault | None:
        if kind == EVENT:
            return None  # nothing depends on Events
        self.writes += 1
        if self.fault is None or self._kind not in (None, kind):
            return None
        if self.at > 0:
            self.at -= 1
            return None
        fault, self.fault = self.fault, None
        return fault


def _before(fault: Fault | None, verb: str) -> None:
    match fault:
        case Fault.CRASH_BEFORE:
            raise ControllerCrash
        case Fault.CONFLICT:
            raise Conflict("changed in the meantime")
        case Fault.NOT_FOUND if verb != "create":
            raise NotFound("not there")
        case Fault.ALREADY_EXISTS if verb == "create":
            raise AlreadyExists("there already")
        case Fault.THROTTLED:
            raise Unavailable("too many requests", 1.0)
        case _:
            pass


def _after(fault: Fault | None, stored: Object) -> Object:
    if fault is Fault.CRASH_AFTER:
        raise ControllerCrash
    if fault is Fault.LOST_ANSWER:
        raise Unavailable("no answer in time")
    return stored
