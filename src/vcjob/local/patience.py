"""A cluster for those who cannot go on without their writes: it waits while nothing can be stored.

Scheduler and node agent write what has happened; giving up a write would leave their books and the
objects apart for good. So a full disk makes them wait, and the user is told.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar, Unpack

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    Cluster,
    DeleteOptions,
    ObjectList,
    PatchOptions,
    StorageFailed,
    WatchEvent,
)

_AGAIN_SECONDS = 1.0

_Result = TypeVar("_Result")


class PatientCluster:
    """A ``Cluster`` whose writes are tried again as long as they raise StorageFailed.

    ``on_problem`` is told when the waiting begins.
    """

    def __init__(self, cluster: Cluster, on_problem: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._on_problem = on_problem
        self._told = False

    @property
    def waiting(self) -> bool:
        """Whether nothing can be stored at present."""
        return self._told

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """As the cluster does."""
        return await self._cluster.get(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        """As the cluster does."""
        return await self._cluster.list(kind, namespace, labels)

    def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """As the cluster does."""
        return self._cluster.watch(kind, since, namespace, labels)

    async def create(self, kind: Kind, obj: Object) -> Object:
        """As the cluster does, as soon as it can store."""
        return await self._stored(lambda: self._cluster.create(kind, obj))

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Unpack[PatchOptions]
    ) -> Object:
        """As the cluster does, as soon as it can store."""
        return await self._stored(
            lambda: self._cluster.patch(kind, namespace, name, patch, **options)
        )

    async def delete(
        self, kind: Kind, namespace: str, name: str, **options: Unpack[DeleteOptions]
    ) -> Object | None:
        """As the cluster does, as soon as it can store."""
        return await self._stored(lambda: self._cluster.delete(kind, namespace, name, **options))

    async def _stored(self, write: Callable[[], Awaitable[_Result]]) -> _Result:
        while True:
            try:
                result = await write()
            except StorageFailed as error:
                if not self._told:
                    self._told = True
                    self._on_problem(f"{error}; waiting until it can be")
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            self._told = False
            return result
