"""``Cluster`` over a real API server.

Source of the rules: Kubernetes documentation, "Kubernetes API Concepts" (watches, bookmarks, lists
in pieces, preconditions).
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, Self

import msgspec

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    Conflict,
    EventType,
    Gone,
    ObjectList,
    Unavailable,
    WatchEvent,
)
from vcjob.kubernetes.connection import JSON, Connection, OnCall, Query, object_path
from vcjob.kubernetes.errors import Asked, event_error
from vcjob.kubernetes.lines import lines
from vcjob.kubernetes.readers import WHOLE, Page, Reader
from vcjob.kubernetes.server import Server

_MERGE_PATCH = "application/merge-patch+json"
_PAGE = 500
"""Objects in one piece of a list, as client-go asks for them."""
_WATCH_SECONDS = (300, 600)
"""How long one watch request lasts, drawn so that watches do not all end together."""
_GRACE_SECONDS = 30.0
"""How much longer than it was asked to a watch may last before it counts as lost."""
_SHORTEST_WATCH_SECONDS = 1.0

_encode = msgspec.json.Encoder().encode


class KubernetesCluster:
    """The objects of an API server. Use it as an async context manager.

    Requests that failed are not repeated here; callers know what may be asked twice.

    Args:
        connection: how the server is reached.
        page: how many objects a list asks for at once.
        readers: how objects of a kind are read, those of other kinds whole.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        page: int = _PAGE,
        readers: Mapping[Kind, Reader] = MappingProxyType({}),
    ) -> None:
        self.connection = connection
        self._page = page
        self._readers = readers

    @classmethod
    def of(cls, server: Server, *, on_call: OnCall | None = None) -> Self:
        """The cluster behind a server; ``on_call`` is told of each request."""
        return cls(Connection(server, on_call=on_call))

    def reading(self, readers: Mapping[Kind, Reader]) -> "KubernetesCluster":
        """The same objects over the same connection, read by ``readers``."""
        return KubernetesCluster(self.connection, page=self._page, readers=readers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.connection.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Read one object; raises NotFound."""
        asked = _asked("get", kind, namespace, name)
        path = object_path(kind, namespace, name)
        return await self._object("GET", path, asked)

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        selector: str = "",
    ) -> ObjectList:
        """Read all objects of a kind, of one namespace or of all, whose labels equal ``labels``.

        ``selector`` is a label selector in the API's own words, in place of ``labels``.
        """
        selected = _selector(labels, selector)
        try:
            return await self._list(kind, namespace, selected, self._page)
        except Gone:  # the list changed so much that its next piece is no longer to be had
            return await self._list(kind, namespace, selected, 0)

    async def _list(
        self, kind: Kind, namespace: str | None, selected: Query, page: int
    ) -> ObjectList:
        asked = _asked("list", kind, namespace or "")
        path = object_path(kind, namespace or "")
        query = [*selected, *([("limit", str(page))] if page else [])]
        items: list[Object] = []
        more = ""
        while True:
            pieces = [*query, ("continue", more)] if more else query
            answer = await self.connection.request("GET", path, asked, query=pieces)
            read: Page = self.connection.decode(answer, asked, self._reader(kind).page)
            for item in read.items or ():
                self._require_object(item, asked)
                # Lists of the server's own kinds leave them out of the items.
                item.setdefault("apiVersion", kind.api_version)
                item.setdefault("kind", kind.kind)
                items.append(item)
            more = read.metadata.more
            if not more:
                return ObjectList(items, read.metadata.resource_version)

    async def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        selector: str = "",
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow changes after resource version ``since``, without end; raises Gone.

        The server ends a watch every few minutes; that is gone on from without a word. A watch that
        breaks raises Unavailable; go on from the version of the last event, bookmarks included.
        """
        asked = _asked("watch", kind, namespace or "")
        path = object_path(kind, namespace or "")
        reader = self._reader(kind)
        loop = asyncio.get_running_loop()
        while True:
            seconds = random.uniform(*_WATCH_SECONDS)
            query = [
                *_selector(labels, selector),
                ("watch", "true"),
                ("allowWatchBookmarks", "true"),
                ("resourceVersion", since),
                ("timeoutSeconds", str(int(seconds))),
            ]
            started = loop.time()
            stream = self.connection.stream(
                path, asked, query=query, silence=seconds + _GRACE_SECONDS
            )
            async with stream as pieces:
                async for line in lines(pieces):
                    event, since = self._event(line, asked, reader)
                    yield event
            # A server that ends each watch at once must not be asked without pause.
            if loop.time() - started < _SHORTEST_WATCH_SECONDS:
                await asyncio.sleep(_SHORTEST_WATCH_SECONDS)

    def _reader(self, kind: Kind) -> Reader:
        return self._readers.get(kind, WHOLE)

    def _event(self, line: bytes, asked: Asked, reader: Reader) -> tuple[WatchEvent, str]:
        """An event and its resource version."""
        server = self.connection.name
        try:
            event = reader.event(line)
            if event.type == "ERROR":
                raise event_error(event.object, asked, server)
            type_, metadata = EventType(event.type), event.object["metadata"]
            if type_ is not EventType.BOOKMARK and not metadata["uid"]:
                raise ValueError("no UID")
            return WatchEvent(type_, event.object), str(metadata["resourceVersion"])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(
                f"{server} broke off in the middle of an event when asked to {asked}"
            ) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise Unavailable(f"{server} sent no event when asked to {asked}") from error

    async def create(self, kind: Kind, obj: Object) -> Object:
        """Create an object and return it as stored; raises AlreadyExists, Invalid, Forbidden."""
        metadata = obj.get("metadata") or {}
        namespace = metadata.get("namespace") or ("default" if kind.namespaced else "")
        name = metadata.get("name") or metadata.get("generateName", "")
        complete = {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
        return await self._object(
            "POST",
            object_path(kind, namespace),
            _asked("create", kind, namespace, name),
            body=_encode(complete),
        )

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Object,
        *,
        subresource: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Object:
        """Apply a JSON merge patch (RFC 7386) and return the result.

        ``subresource="status"`` writes only the status. With ``uid`` or ``resource_version`` the
        patch happens only if they are the current ones, else Conflict. Raises NotFound.
        """
        if uid and subresource and not resource_version:
            # A status subresource takes no notice of the patch's UID, but does of the version.
            present = await self.get(kind, namespace, name)
            if present["metadata"]["uid"] != uid:
                raise Conflict(f"{kind} {name} is another object of the same name")
            resource_version = present["metadata"]["resourceVersion"]
        conditions = {"uid": uid, "resourceVersion": resource_version}
        demanded = {field: value for field, value in conditions.items() if value}
        if demanded:
            patch = {**patch, "metadata": {**(patch.get("metadata") or {}), **demanded}}
        return await self._object(
            "PATCH",
            object_path(kind, namespace, name, subresource),
            _asked("patch", kind, namespace, name, subresource),
            body=_encode(patch),
            content_type=_MERGE_PATCH,
        )

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Ask for deletion; with ``uid`` only of that very object. Raises NotFound, Conflict."""
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        await self.connection.request(
            "DELETE",
            object_path(kind, namespace, name),
            _asked("delete", kind, namespace, name),
            body=_encode(options),
        )

    async def _object(
        self,
        method: str,
        path: str,
        asked: Asked,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = JSON,
    ) -> Object:
        answer = await self.connection.request(
            method, path, asked, query=query, body=body, content_type=content_type
        )
        assert asked.kind is not None
        obj: Object = self.connection.decode(answer, asked, self._reader(asked.kind).object)
        if asked.name:  # a review of rights has none, and nor has the answer
            self._require_object(obj, asked)
        return obj

    def _require_object(self, obj: Object, asked: Asked) -> None:
        """Raises Unavailable for what no API server sends: callers rely on who an object is."""
        metadata = obj.get("metadata")
        if not (isinstance(metadata, dict) and metadata.get("uid")):
            raise Unavailable(
                f"{self.connection.name} answered no object when asked to {asked}; "
                "is it an API server?"
            )


def _asked(verb: str, kind: Kind, namespace: str, name: str = "", subresource: str = "") -> Asked:
    return Asked(verb, kind, namespace if kind.namespaced else "", name, subresource)


def _selector(labels: Mapping[str, str] | None, selector: str) -> Query:
    selector = selector or ",".join(f"{key}={value}" for key, value in (labels or {}).items())
    return [("labelSelector", selector)] if selector else []
