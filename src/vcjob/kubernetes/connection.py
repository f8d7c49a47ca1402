"""Requests to an API server over aiohttp, and what their failures mean.

Of the clients measured (one pod create: aiohttp 0.31 ms of CPU, lightkube 1.05, the official one
1.2, kr8s 5.1) aiohttp is the cheapest, and it also speaks WebSocket.
"""

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from vcjob.api.kinds import Kind
from vcjob.controller.cluster import ClusterError, Unavailable
from vcjob.kubernetes.credentials import Credential, Credentials
from vcjob.kubernetes.errors import Asked, Unauthorized, error_of
from vcjob.kubernetes.failures import in_a_sentence
from vcjob.kubernetes.server import Server
from vcjob.kubernetes.sessions import CONNECT_SECONDS, Sessions

JSON = "application/json"
_ANSWER_SECONDS = 60.0
_READ_BUFFER = 256 * 1024

Query = Sequence[tuple[str, str]]

OnCall = Callable[[str, Kind | None, int, float], None]
"""Told of a request: its verb, its kind, the status of the answer (0: none came), and how long (s)
it took until the answer began."""
T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True):
    """A response with a status below 400."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Refused(Exception):
    """A WebSocket handshake that the server answered with something else."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


def object_path(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of an object, or without ``name`` of a collection (of all namespaces without one).

    ``name`` and ``namespace`` are escaped.
    """
    prefix = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    parts = [prefix]
    if kind.namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(kind.plural)
    if name:
        parts.append(quote(name, safe=""))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


class Connection:
    """Requests to one server. Use it as an async context manager, in one event loop.

    Every method raises a ClusterError for an answer of 400 or more (see errors.py), Unreachable
    where no connection could be made, NoCredentials where a credential could not be had, and
    Unavailable where a connection broke: then the request may have been carried out. Credentials
    that the server refuses are asked for anew, once. ``on_call`` is told of each HTTP request.
    """

    def __init__(
        self,
        server: Server,
        credentials: Credentials | None = None,
        *,
        on_call: OnCall | None = None,
    ) -> None:
        self.server = server
        self.on_call = on_call
        self._credentials = credentials or Credentials(server)
        self._sessions = Sessions(server, self._credentials, _keep_refusal)

    @property
    def name(self) -> str:
        """What messages call the server."""
        return self.server.shown

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._sessions.close()

    async def request(
        self,
        method: str,
        path: str,
        asked: Asked,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        seconds: float = _ANSWER_SECONDS,
    ) -> Answer:
        """Send a request and read the whole answer, which may take ``seconds``."""
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        async with self._send(method, path, query, headers, asked, timeout, body) as response:
            content = await response.read()
        return Answer(response.status, response.headers, content)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, asked: Asked, *, query: Query = (), accept: str = JSON,
        silence: float | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:  # fmt: skip
        """Read an answer as it comes, in pieces; ``silence`` is how long (s) none may come."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        async with self._send("GET", path, query, headers, asked, timeout) as response:
            try:
                yield response.content.iter_any()
            finally:
                # Whoever leaves before the end has no use for a farewell, which the other side may
                # owe for ever: what is closed next would wait for it, or leave it open.
                if (used := response.connection) and used.transport:
                    used.transport.abort()

    @contextlib.asynccontextmanager
    async def websocket(
        self, path: str, asked: Asked, *, protocols: Sequence[str], query: Query = ()
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket that speaks one of ``protocols``."""
        with in_a_sentence(self.server, asked, self._sessions.expired):
            for last in (False, True):
                session, credential = await self._sessions.current()
                try:
                    async with asyncio.timeout(_ANSWER_SECONDS):
                        socket_ = await session.ws_connect(
                            self._url(path, query),
                            protocols=protocols,
                            headers=self._headers(credential, {}),
                            max_msg_size=0,
                            **self._sessions.route,
                        )
                    break
                except _Refused as refused:
                    error = self._error(refused.status, refused.headers, refused.body, asked)
                    again = isinstance(error, Unauthorized) and self._credentials.refuse(credential)
                    if last or not again:
                        raise error from refused
        try:
            if socket_.protocol not in protocols:
                raise Unavailable(
                    f"{self.name} speaks none of the protocols {', '.join(protocols)}, "
                    f"which are needed to {asked}"
                )
            with in_a_sentence(self.server, asked, self._sessions.expired):
                yield socket_
        finally:
            await socket_.close()

    @contextlib.asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        query: Query,
        headers: dict[str, str],
        asked: Asked,
        timeout: aiohttp.ClientTimeout,
        body: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        with in_a_sentence(self.server, asked, self._sessions.expired):
            for last in (False, True):
                session, credential = await self._sessions.current()
                request = session.request(
                    method,
                    self._url(path, query),
                    data=body,
                    headers=self._headers(credential, headers),
                    timeout=timeout,
                    allow_redirects=False,
                    read_bufsize=_READ_BUFFER,
                    middlewares=(),
                    **self._sessions.route,
                )
                async with await self._answer(asked, request) as response:
                    if 200 <= response.status < 300:
                        yield response
                        return
                    content = await response.read()
                error = self._error(response.status, response.headers, content, asked)
                again = isinstance(error, Unauthorized) and self._credentials.refuse(credential)
                if last or not again:
                    raise error

    async def _answer(
        self, asked: Asked, request: Awaitable[aiohttp.ClientResponse]
    ) -> aiohttp.ClientResponse:
        """The answer as soon as it begins."""
        started, status = time.monotonic(), 0
        try:
            response = await request
            status = response.status
            return response
        finally:
            if self.on_call:
                self.on_call(asked.verb, asked.kind, status, time.monotonic() - started)

    def _error(
        self, status: int, headers: Mapping[str, str], body: bytes, asked: Asked
    ) -> ClusterError:
        error = error_of(status, headers, body, asked, self.name)
        return Unauthorized(f"{error}{self._sessions.expired()}") if status == 401 else error

    def _headers(
        self, credential: Credential, more: Mapping[str, str]
    ) -> Iterable[tuple[str, str]]:
        headers = [*more.items(), *self.server.impersonate]
        if credential.token:
            headers.append(("Authorization", f"Bearer {credential.token}"))
        elif self.server.basic:
            pair = base64.b64encode(":".join(self.server.basic).encode()).decode()
            headers.append(("Authorization", f"Basic {pair}"))
        return headers

    def _url(self, path: str, query: Query) -> URL:
        encoded = f"?{urlencode(query)}" if query else ""
        return URL(f"{self.server.url}{path}{encoded}", encoded=True)

    def decode(self, answer: Answer, asked: Asked, decode: Callable[[bytes], T]) -> T:
        """The JSON of an answer, as ``decode`` reads it; raises Unavailable if it is none."""
        try:
            return decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(
                f"{self.name} answered no JSON when asked to {asked}; is it an API server?"
            ) from error


async def _keep_refusal(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep the text with which a WebSocket is refused; aiohttp's own error drops it."""
    response = await handler(request)
    if "Sec-WebSocket-Key" in request.headers and response.status != 101:
        body = await response.read()
        raise _Refused(response.status, response.headers, body)
    return response
