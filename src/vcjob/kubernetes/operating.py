"""The cluster as ``vcjob operator`` sees it and writes to it.

Around ``KubernetesCluster``: only what is in the operator's scope, trimmed to what somebody reads;
writes each in their turn, at a pace that spares the API server, and again where that helps and
cannot do anything twice.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Unpack

import msgspec

from vcjob.api.kinds import EVENT, JOB, POD, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    ClusterError,
    Conflict,
    DeleteOptions,
    EventType,
    NotFound,
    ObjectList,
    PatchOptions,
    WatchEvent,
)
from vcjob.core.supporting import subset_patch
from vcjob.kubernetes import supposed
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.pacing import SPARING, Limits, Pace
from vcjob.kubernetes.retrying import ONCE_MORE, PATIENT, Patience, Retrier, Settle, nothing_settled
from vcjob.kubernetes.scope import EVERYTHING, Scope
from vcjob.kubernetes.trimming import PLACING_READERS, READERS


class OperatorCluster:
    """What a Controller that runs as an operator works on: a ``Cluster``.

    Args:
        cluster: the whole cluster. Its connection's ``on_call`` is told of every request.
        scope: what is seen of it.
        limits: how fast it is written to.
        patience: how often what failed is tried again.
        jitter: a number from 0 to 1, drawn to spread repeated tries.
        sleep: waits that many seconds.
    """

    def __init__(
        self,
        cluster: KubernetesCluster,
        scope: Scope = EVERYTHING,
        limits: Limits = SPARING,
        *,
        patience: Patience = PATIENT,
        jitter: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._whole = cluster
        self._cluster = cluster.reading(PLACING_READERS if scope.all_pods else READERS)
        self._scope = scope
        self._patience = patience
        self._jitter = jitter or random.Random()
        self._sleep = sleep
        self._retrier = Retrier(self._jitter, sleep)
        self._pace = Pace(limits)
        self._owners: dict[str, str] = {}
        self._queues = supposed.SupposedQueues()

    def with_all_pods(self) -> "OperatorCluster":
        """The cluster as whoever places pods sees it: all pods in it, with what they request.

        Writes through both keep one pace.
        """
        other = self._seeing(Scope(all_pods=True))
        other._owners, other._queues = self._owners, self._queues
        return other

    def within(self, namespace: str | None) -> "OperatorCluster":
        """The same, but of one namespace (None: all); writes through both keep one pace."""
        return self._seeing(msgspec.structs.replace(self._scope, namespace=namespace))

    def _seeing(self, scope: Scope) -> "OperatorCluster":
        other = OperatorCluster(
            self._whole, scope, patience=self._patience, jitter=self._jitter, sleep=self._sleep
        )
        other._pace = self._pace
        return other

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Read one object; raises NotFound. Asked again where no usable answer came."""
        return await self._read(self._cluster, kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        """Read all objects of a kind in scope whose labels equal ``labels``, page by page."""
        if self._scope.is_hidden(kind):
            items = self._queues.all() if kind == QUEUE else []
            return ObjectList(items, supposed.VERSION)
        listed = await self._cluster.list(
            kind, self._scope.place(kind, namespace), selector=self._scope.selector(kind, labels)
        )
        if kind == POD and namespace is None:
            self._owners.clear()  # of pods that are gone, too
        for obj in listed.items:
            await self._note(kind, obj)
        return listed

    async def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow changes after version ``since``, without end; raises Gone."""
        if self._scope.is_hidden(kind):
            events = self._queues.watch() if kind == QUEUE else _nothing()
        else:
            place = self._scope.place(kind, namespace)
            selector = self._scope.selector(kind, labels)
            events = self._cluster.watch(kind, since, place, selector=selector)
        async with contextlib.aclosing(events):
            async for event in events:
                if event.type is EventType.DELETED:
                    self._owners.pop(event.object["metadata"].get("uid", ""), None)
                elif event.type is not EventType.BOOKMARK:
                    await self._note(kind, event.object)
                yield event

    async def create(self, kind: Kind, obj: Object) -> Object:
        """Create an object; raises AlreadyExists, Invalid, Forbidden.

        AlreadyExists may come from an earlier try of this very call, whose answer was lost: what
        is there tells by its owner whose it is. An Event is recognised here.
        """
        metadata = obj["metadata"]

        async def is_told(error: ClusterError) -> Object | None:
            if kind != EVENT or not isinstance(error, AlreadyExists):
                return None
            there = await self.get(kind, metadata["namespace"], metadata["name"])
            return None if subset_patch(there, obj) else there

        owner = _owner_of(obj) or (obj.get("involvedObject") or {}).get("uid")
        created = await self._write(
            kind,
            owner or f"{metadata.get('namespace', '')}/{metadata.get('name', '')}",
            lambda: self._cluster.create(kind, obj),
            is_told,
            conflicts_pass=True,
        )
        await self._note(kind, created)
        return created

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Unpack[PatchOptions]
    ) -> Object:
        """Apply a JSON merge patch (RFC 7386) and return the result.

        As ``KubernetesCluster.patch``. A Conflict after a lost answer is none if the object is as
        the patch wants it.
        """

        uid = options.get("uid", "")

        async def is_done(error: ClusterError) -> Object | None:
            if not options.get("resource_version") or not isinstance(error, Conflict):
                return None
            there = await self._read(
                self._whole, kind, namespace, name
            )  # all: a patch may be of any
            is_another = uid and there["metadata"]["uid"] != uid
            return None if is_another or subset_patch(there, patch) else there

        return await self._write(
            kind,
            self._owners.get(uid) or uid or f"{namespace}/{name}",
            lambda: self._cluster.patch(kind, namespace, name, patch, **options),
            is_done,
            conflicts_pass=not (options.get("resource_version") or uid),
        )

    async def delete(
        self, kind: Kind, namespace: str, name: str, **options: Unpack[DeleteOptions]
    ) -> None:
        """Ask for deletion; with ``uid`` only of that very object. Raises NotFound, Conflict.

        That the object is gone after a lost answer is what was asked for.
        """

        uid = options.get("uid", "")

        async def delete() -> Object:
            await self._cluster.delete(kind, namespace, name, **options)
            return {}

        async def is_gone(error: ClusterError) -> Object | None:
            return {} if isinstance(error, NotFound | Conflict) else None

        await self._write(
            kind,
            self._owners.get(uid) or uid or f"{namespace}/{name}",
            delete,
            is_gone,
            repeat_unclear=bool(uid),  # else it may be a successor that is deleted
        )

    async def _read(
        self, cluster: KubernetesCluster, kind: Kind, namespace: str, name: str
    ) -> Object:
        return await self._retrier.make(
            lambda: cluster.get(kind, namespace, name), patience=self._patience
        )

    async def _write(
        self,
        kind: Kind,
        key: str,
        request: Callable[[], Awaitable[Object]],
        settle: Settle = nothing_settled,
        *,
        conflicts_pass: bool = False,
        repeat_unclear: bool = True,
    ) -> Object:
        """Do a write in the turns of ``key``; while it waits for its next try others go."""

        async def in_turn() -> Object:
            async with self._pace.turn(key, last=kind == EVENT):
                return await request()

        return await self._retrier.make(
            in_turn,
            settle,
            patience=ONCE_MORE if kind == EVENT else self._patience,
            conflicts_pass=conflicts_pass,
            repeat_unclear=repeat_unclear,
        )

    async def _note(self, kind: Kind, obj: Object) -> None:
        """Keep in mind whose turn it is when a pod is written, and which queues there must be."""
        if kind == POD and (owner := _owner_of(obj)):
            self._owners[obj["metadata"]["uid"]] = owner
        elif kind == JOB and self._scope.is_hidden(QUEUE):
            await self._queues.suppose(obj)


def _owner_of(obj: Object) -> str:
    """The UID of the Job that controls an object."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == JOB.kind:
            return str(owner.get("uid", ""))
    return ""


async def _nothing() -> AsyncGenerator[WatchEvent, None]:
    """A watch without events."""
    await asyncio.get_running_loop().create_future()
    yield WatchEvent(EventType.BOOKMARK, {})  # never: this makes it an iterator
