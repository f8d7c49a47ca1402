"""The API server: from a request on a socket to an answer.

Every request is authenticated, and must be addressed to this machine by a name of its loopback
interface: a web page that makes a browser connect here under another name gets nothing.
"""

import asyncio
import contextlib
import hmac
import logging
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

from aiohttp import web

from vcjob.api.kinds import POD
from vcjob.controller.cluster import ClusterError
from vcjob.controller.connections import IDLE_SECONDS, Connections, save_memory_of_tls
from vcjob.controller.http_log import http_log
from vcjob.local.apiserver import query, reviews
from vcjob.local.apiserver.about_server import about_server
from vcjob.local.apiserver.answers import Answer, send
from vcjob.local.apiserver.bodies import Body, decode_object, media_type, program, read_body
from vcjob.local.apiserver.custom import Served
from vcjob.local.apiserver.deleting import Deleting
from vcjob.local.apiserver.forms import FORMS, one
from vcjob.local.apiserver.listing import Lists, check_version, selection
from vcjob.local.apiserver.namespaces import Namespaces
from vcjob.local.apiserver.negotiation import Media, negotiate
from vcjob.local.apiserver.paths import Place, place_of, split
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused, Written, failure, refusal_of
from vcjob.local.apiserver.watching import watch
from vcjob.local.apiserver.writing import Writing
from vcjob.local.store import Store
from vcjob.plugins.registry import Registry, installed_plugins

Door = Callable[[web.BaseRequest, Place, query.Query], Awaitable[web.StreamResponse]]
"""Answers requests about a running pod: its logs, commands in it, its ports. Raises Refused."""

_PORT = re.compile(r":[0-9]+\Z")
_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_SILENT_SECONDS = 32.0
"""For the head of a connection's first request, as Kubernetes' API server waits."""
_SHUTDOWN_SECONDS = 2.0
_LONGEST_LINE = 1024 * 1024  # bytes of a URL, as Go takes: commands of exec stand in it
_HEALTH = ("healthz", "livez", "readyz")

_log = logging.getLogger(__name__)


class ApiServer:
    """Answers requests out of a store. ``serve`` puts it on a socket.

    Args:
        store: the objects.
        token: what a request must present as its bearer token.
        doors: what answers requests about running pods, by subresource (``log``, ``exec``, ...).
        plugins: the plugins that Jobs can use.
        clock: the time in seconds since 1970.
        hosts: names and addresses by which clients reach the server, beside the loopback ones.
    """

    def __init__(
        self,
        store: Store,
        token: str,
        *,
        doors: Mapping[str, Door] | None = None,
        plugins: Registry | None = None,
        clock: Callable[[], float] = time.time,
        hosts: Iterable[str] = (),
    ) -> None:
        self._store = store
        self._hosts = frozenset((*_HOSTS, *hosts))
        self._credential = f"Bearer {token}".encode()
        self._doors = dict(doors or {})
        self._served = Served(store)
        self.namespaces = Namespaces(store, self._served.namespaced_kinds)
        plugins = plugins or installed_plugins(third_party=True)
        self._writing = Writing(store, self.namespaces, plugins, clock)
        self._deleting = Deleting(store, self.namespaces, clock)
        self._lists = Lists(store)
        self._lasting: set[asyncio.Task[object]] = set()
        self.port = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            self._check_sender(request)
            return await self._answer(request)
        except Refused as refused:
            answer = Answer(failure(refused), refused.code)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            message = "the server failed; its log has the details"
            answer = Answer(failure(Refused(500, message)), 500)
        response = await send(request, answer)
        if answer.code in (401, 408, 413, 415):
            response.force_close()  # what is left of the body is not read
        return response

    def end_lasting(self) -> None:
        """End requests that would go on for as long as their clients like."""
        for task in self._lasting:
            task.cancel()

    @contextlib.contextmanager
    def _lasts(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None, "requests are answered in tasks"
        self._lasting.add(task)
        try:
            yield
        finally:
            self._lasting.discard(task)

    def _check_sender(self, request: web.BaseRequest) -> None:
        host = request.headers.get("Host", "")
        # Its port may be that of a tunnel to here. What a browser was led here by is a name.
        if _PORT.sub("", host) not in self._hosts:
            raise Refused(403, f"requests for the host {host[:100]!r} are not answered here")
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._credential):
            raise Refused(401, "Unauthorized")

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        raw, _, _ = request.raw_path.partition("?")
        try:
            segments = split(raw)
        except UnicodeDecodeError as error:
            raise Refused(400, "the path of the request is not UTF-8") from error
        place = place_of(segments)
        if segments[:1] and segments[0] in _HEALTH and request.method in ("GET", "HEAD"):
            return web.Response(text="ok")
        if place is None:
            return await send(request, await self._about_server(request, segments))
        resource = await self._served.find(place.key)
        if resource is None or (place.namespace and not resource.kind.namespaced):
            raise _no_resource()
        try:
            return await self._about_resource(request, resource, place)
        except ClusterError as error:
            raise refusal_of(error, resource.kind, place.name) from error

    async def _about_server(self, request: web.BaseRequest, segments: tuple[str, ...]) -> Answer:
        if request.method not in ("GET", "HEAD"):
            raise _no_method(request.method) if segments else _no_resource()
        resources = await self._served.all()
        answer = about_server(segments, resources, request.headers.get("Accept", ""), self.port)
        if answer is None:
            raise _no_resource()
        return answer

    async def _about_resource(
        self, request: web.BaseRequest, resource: Resource, place: Place
    ) -> web.StreamResponse:
        asked: query.Query = request.rel_url.query
        if resource.verbs == ("create",):
            return await self._review(request, resource, place)
        if place.subresource and place.subresource != "status":
            return await self._about_part(request, resource, place, asked)
        if place.subresource and not resource.has_status:
            raise _no_resource()
        if resource.kind.namespaced and place.name and not place.namespace:
            raise _no_resource()
        accept = request.headers.get("Accept", "")
        match request.method, bool(place.name):
            case "GET", _ if query.flag(asked, "watch"):
                with self._lasts():
                    return await watch(request, self._store, resource, place, asked)
            case (("GET" | "HEAD"), True):
                media, include = negotiate(accept, FORMS), asked.get("includeObject", "")
                check_version(_no_match(asked), self._store.version)
                obj = await self._store.get(resource.stored, place.namespace, place.name)
                return await send(request, one(resource, obj, media, include))
            case (("GET" | "HEAD"), False):
                return await send(request, await self._lists.answer(resource, place, asked, accept))
            case "DELETE", False:
                return await self._delete_collection(request, resource, place, asked)
        writes = {
            ("POST", False): self._writing.create,
            ("PUT", True): self._writing.replace,
            ("PATCH", True): self._writing.patch,
            ("DELETE", True): self._deleting.delete,
        }
        write = writes.get((request.method, bool(place.name)))
        if write is None or (place.subresource and request.method == "DELETE"):
            raise _no_method(request.method)
        if request.method == "POST" and resource.kind.namespaced and not place.namespace:
            raise _no_method(request.method)
        negotiate(accept, FORMS)  # refuse before anything is stored
        body = Body(await read_body(request), media_type(request), program(request))
        return await self._send_written(
            request, resource, await write(resource, place, asked, body)
        )

    async def _review(
        self, request: web.BaseRequest, resource: Resource, place: Place
    ) -> web.StreamResponse:
        if request.method != "POST" or place.name:
            raise _no_method(request.method)
        media = negotiate(request.headers.get("Accept", ""))
        question = decode_object(await read_body(request), media_type(request))
        return await send(request, Answer(reviews.answer(resource.kind, question), 201, media))

    async def _send_written(
        self, request: web.BaseRequest, resource: Resource, written: Written
    ) -> web.StreamResponse:
        media = negotiate(request.headers.get("Accept", ""), FORMS)
        if written.is_status:
            answer = Answer(written.object, written.code, Media(media.type), written.warnings)
        else:
            include = request.rel_url.query.get("includeObject", "")
            shown = one(resource, written.object, media, include)
            answer = Answer(shown.object, written.code, media, written.warnings)
        return await send(request, answer)

    async def _delete_collection(
        self, request: web.BaseRequest, resource: Resource, place: Place, asked: query.Query
    ) -> web.StreamResponse:
        if "deletecollection" not in resource.verbs:
            raise _no_method("DELETE")
        if resource.kind.namespaced and not place.namespace:
            raise _no_method("DELETE")
        body = Body(await read_body(request), media_type(request))
        wanted = selection(resource, place, asked)
        found = await self._store.select(resource.stored, place.namespace or None, wanted)
        answer = await self._lists.answer(
            resource,
            place,
            {**asked, "limit": "", "continue": ""},
            request.headers.get("Accept", ""),
        )
        await self._deleting.delete_all(resource, found.items, asked, body)
        return await send(request, answer)

    async def _about_part(
        self, request: web.BaseRequest, resource: Resource, place: Place, asked: query.Query
    ) -> web.StreamResponse:
        known = {part.name for part in resource.subresources}
        name, _, _ = place.subresource.partition("/")
        if resource.kind == POD and name in self._doors:
            with self._lasts():
                return await self._doors[name](request, place, asked)
        orders = {"binding": self._writing.bind, "eviction": self._deleting.evict}
        if name not in known or (resource.kind == POD and name not in orders):
            raise _no_resource()  # a part of pods for which there is no door
        if name in orders and request.method == "POST":
            body = Body(await read_body(request), media_type(request))
            written = await orders[name](resource, place, asked, body)
            return await self._send_written(request, resource, written)
        if name == "scale":
            raise Refused(
                403,
                f'a Job has a number of replicas for each task: use "vcjob scale {place.name} '
                'TASK=N", or change spec.tasks',
            )
        raise _no_method(request.method)


@contextlib.asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    ssl_context: ssl.SSLContext | None,
    host: str = "127.0.0.1",
    port: int = 0,
    silent_seconds: float = _SILENT_SECONDS,
) -> AsyncIterator[int]:
    """Answer requests on a port (0: a free one) of a loopback address while in the context.

    Yields the port. Connections that ask nothing for ``silent_seconds`` are closed. Leaving the
    context ends watches at once. Raises OSError if the port cannot be had.
    """
    await server.namespaces.start()
    if ssl_context is not None:
        save_memory_of_tls()
    connections = Connections(silent_seconds)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        with connections.asking(request):
            return await server.handle(request)

    runner = web.ServerRunner(
        web.Server(
            handle,
            access_log=None,
            auto_decompress=False,  # compressed bodies are refused: see bodies.py
            handler_cancellation=True,
            keepalive_timeout=IDLE_SECONDS,
            logger=http_log,
            max_line_size=_LONGEST_LINE,
        ),
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    assert runner.server is not None
    looking = asyncio.create_task(connections.keep(runner.server))
    try:
        site = web.TCPSite(runner, host, port, ssl_context=ssl_context)
        await site.start()
        server.port = runner.addresses[0][1]
        yield server.port
    finally:
        looking.cancel()
        await server.namespaces.close()
        server.end_lasting()
        await runner.cleanup()


def _no_match(asked: query.Query) -> dict[str, str]:
    return {"resourceVersion": asked.get("resourceVersion", "")}


def _no_resource() -> Refused:
    return Refused(404, "the server could not find the requested resource")


def _no_method(method: str) -> Refused:
    return Refused(405, f"the server does not allow {method[:20]} on the requested resource")
