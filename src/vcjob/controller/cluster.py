"""The one door to wherever objects live: the local store or a real API server.

The controller, the scheduler and the node agent know objects only through ``Cluster``. Objects are
plain JSON; whoever gets one must not change it (caches and store share it).
"""

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Protocol, TypedDict, Unpack

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import Kind
from vcjob.api.types import Object


class ClusterError(VcjobError):
    """A request that the cluster did not carry out."""


class NotFound(ClusterError):
    """The object does not exist."""


class AlreadyExists(ClusterError):
    """An object of that name exists."""


class Conflict(ClusterError):
    """The resource version or UID that the request named is no longer the current one."""


class Invalid(ClusterError):
    """The object was refused; asking again with the same object cannot help."""


class Forbidden(ClusterError):
    """Refused for lack of rights or quota."""


class Gone(ClusterError):
    """The resource version is too old to watch from: list again."""


class Unavailable(ClusterError):
    """No usable answer; the request may or may not have been carried out.

    ``retry_after`` is in seconds, None where the server named none.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StorageFailed(Unavailable):
    """The objects cannot be written (to a full disk, say); nothing of the request happened."""


class EventType(StrEnum):
    """What happened to a watched object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(msgspec.Struct, frozen=True):
    """One change. ``object`` is the state after it (for DELETED the last state)."""

    type: EventType
    object: Object


class ObjectList(msgspec.Struct, frozen=True):
    """Objects as of one resource version, from which a watch can go on without a gap."""

    items: list[Object]
    resource_version: str


class PatchOptions(TypedDict, total=False):
    """How to patch: ``subresource="status"`` writes only the status.

    With ``uid`` or ``resource_version`` it happens only if they are the current ones, else
    Conflict.
    """

    subresource: str
    uid: str
    resource_version: str


class DeleteOptions(TypedDict, total=False):
    """How to delete: with ``uid`` only that very object, else Conflict.

    ``grace_period_seconds`` takes the place of the object's own. ``propagation`` is what becomes of
    what it owns: Background (the default), Foreground or Orphan.
    """

    uid: str
    grace_period_seconds: int | None
    propagation: str


class Cluster(Protocol):
    """Get, list, watch, create, patch, delete on plain objects, with resource versions."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Read one object; raises NotFound."""

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        """Read all objects of a kind, of one namespace or of all, whose labels equal ``labels``."""

    def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Follow changes after resource version ``since``, without end; raises Gone."""

    async def create(self, kind: Kind, obj: Object) -> Object:
        """Create an object and return it as stored; raises AlreadyExists, Invalid, Forbidden."""

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Unpack[PatchOptions]
    ) -> Object:
        """Apply a JSON merge patch (RFC 7386) and return the result; raises NotFound, Conflict."""

    async def delete(
        self, kind: Kind, namespace: str, name: str, **options: Unpack[DeleteOptions]
    ) -> Object | None:
        """Ask for deletion; raises NotFound, Conflict.

        Returns the object as it was left, where the cluster tells.
        """
