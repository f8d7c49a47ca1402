"""Watches: every change of what is selected, as a stream of events.

Source: Kubernetes documentation, "API Concepts" (efficient detection of changes, watch bookmarks,
streaming lists). A reader that takes nothing for a while is dropped; one that falls behind by more
changes than the store keeps is told 410 and lists again.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import msgspec
from aiohttp import web

from vcjob.api.types import Object
from vcjob.controller.cluster import ClusterError, EventType, WatchEvent
from vcjob.local.apiserver import query
from vcjob.local.apiserver.forms import FORMS, watched
from vcjob.local.apiserver.listing import selection
from vcjob.local.apiserver.negotiation import JSON, PARTIAL, TABLE, Media, negotiate
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused, failure, refusal_of
from vcjob.local.store import Store

_SHORTEST = 1800  # seconds that a watch lasts that names no time, as Kubernetes' API server
_BOOKMARK_EVERY = 60.0
_SLOWEST_READER = 30.0  # seconds in which a reader must take something
_INITIAL_END = {"k8s.io/initial-events-end": "true"}
_A_TURN = 100

_encode = msgspec.json.Encoder().encode


async def watch(
    request: web.BaseRequest, store: Store, resource: Resource, place: Place, asked: Query
) -> web.StreamResponse:
    """Answer a watch request until its time is over or the reader is gone; raises Refused."""
    media = negotiate(request.headers.get("Accept", ""), FORMS)
    if media.form not in ("", TABLE, PARTIAL) or media.type != JSON:
        raise Refused(406, f"watches are served as {JSON}")
    wanted = selection(resource, place, asked)
    begin = _beginning(asked)
    include = query.choice(asked, "includeObject", "None", "Metadata", "Object")
    shaped = watched(resource, media, include)
    stream = _Stream(request, resource, shaped, query.flag(asked, "allowWatchBookmarks") or False)
    seconds = query.count(asked, "timeoutSeconds") or _SHORTEST * (1 + random.random())
    namespace = place.namespace or None
    initial: list[Object] = []
    if begin.initial:
        found = await store.select(resource.stored, namespace, wanted)
        initial, since = found.items, found.resource_version
    else:
        since = str(begin.since)
    await stream.open(media)
    try:
        async with asyncio.timeout(seconds):
            for number, obj in enumerate(initial, 1):
                await stream.send(WatchEvent(EventType.ADDED, obj))
                if number % _A_TURN == 0:
                    await asyncio.sleep(0)
            if begin.mark_end:
                await stream.bookmark(since, _INITIAL_END)
            events = store.follow(resource.stored, since, namespace, wanted)
            await _pump(stream, events, lambda: str(store.version))
    except TimeoutError:
        if stream.is_stuck:
            return stream.drop()
        await stream.bookmark(str(store.version))
    except ClusterError as error:
        await stream.fail(refusal_of(error, resource.kind, place.name))
    except (ConnectionError, asyncio.IncompleteReadError):
        return stream.response  # the reader is gone
    await stream.close()
    return stream.response


class _Beginning(msgspec.Struct, frozen=True):
    """Where a watch begins: with all that there is (``initial``), or after a version."""

    since: int
    initial: bool
    mark_end: bool


def _beginning(asked: Query) -> _Beginning:
    version = query.version(asked)
    rule = query.choice(asked, "resourceVersionMatch", "NotOlderThan", "Exact")
    initial = query.flag(asked, "sendInitialEvents")
    if initial is not None and rule != "NotOlderThan":
        raise Refused(422, "sendInitialEvents needs resourceVersionMatch=NotOlderThan")
    if rule and initial is None:
        raise Refused(422, "resourceVersionMatch is forbidden for watch without sendInitialEvents")
    if initial:
        return _Beginning(0, True, bool(query.flag(asked, "allowWatchBookmarks")))
    if initial is None and not version:
        return _Beginning(0, True, False)
    return _Beginning(version or 0, False, False)


async def _pump(
    stream: "_Stream", events: AsyncIterator[WatchEvent], version: Callable[[], str]
) -> None:
    """Pass on events as they come, with a bookmark now and then; ends only by an exception."""
    marks = asyncio.create_task(_bookmark_now_and_then(stream, version))
    number = 0
    try:
        async for event in events:
            await stream.send(event)
            number += 1
            if number % _A_TURN == 0:
                await asyncio.sleep(0)  # others get a turn although there is more to send
    finally:
        marks.cancel()


async def _bookmark_now_and_then(stream: "_Stream", version: Callable[[], str]) -> None:
    if not stream.bookmarks:
        return
    while True:
        await asyncio.sleep(_BOOKMARK_EVERY)
        try:
            await stream.bookmark(version())
        except (ConnectionError, TimeoutError):
            return  # the next event finds the same


class _Stream:
    """One watch's response."""

    def __init__(
        self,
        request: web.BaseRequest,
        resource: Resource,
        shaped: Callable[[Object], Object],
        bookmarks: bool,
    ) -> None:
        self._request = request
        self._resource = resource
        self._shaped = shaped
        self.bookmarks = bookmarks
        self.is_stuck = False
        self.response = web.StreamResponse()

    async def open(self, media: Media) -> None:
        """Send the head."""
        self.response.content_type = "application/json"
        self.response.headers["Content-Type"] = media.content_type
        self.response.headers["Cache-Control"] = "no-cache, private"
        self.response.enable_chunked_encoding()
        await self.response.prepare(self._request)

    async def send(self, event: WatchEvent) -> None:
        """Send one event; raises TimeoutError (and is stuck) if the reader takes nothing."""
        await self._write({"type": event.type, "object": self._shaped(event.object)})

    async def bookmark(self, version: str, annotations: dict[str, str] | None = None) -> None:
        """Tell the version up to which the reader knows everything, if it asked for that."""
        if not self.bookmarks:
            return
        metadata: Object = {"resourceVersion": version, "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind = self._resource.kind
        mark = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        await self._write({"type": "BOOKMARK", "object": mark})

    async def fail(self, refused: Refused) -> None:
        """Tell why the watch cannot go on."""
        await self._write({"type": "ERROR", "object": failure(refused)})

    async def close(self) -> None:
        """End the response."""
        await self.response.write_eof()

    def drop(self) -> web.StreamResponse:
        """Hang up on a reader that does not read."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return self.response

    async def _write(self, event: Object) -> None:
        try:
            async with asyncio.timeout(_SLOWEST_READER):
                await self.response.write(_encode(event) + b"\n")
        except TimeoutError:
            self.is_stuck = True
            raise
