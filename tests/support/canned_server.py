"""An HTTP server that gives canned answers in order, good and bad, and notes what it was asked."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from vcjob.kubernetes.server import Server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Canned:
    """The server's side: answers to come, and requests that came."""

    url: str = ""
    answers: deque[Handler] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)

    def server(self, **more: Any) -> Server:
        return Server(url=self.url, name="test", **more)

    def say(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Answer the next request with JSON, or with text."""
        text = body if isinstance(body, str) else json.dumps(body)

        async def handler(_: web.Request) -> web.StreamResponse:
            return web.Response(text=text, status=status, headers=headers)

        self.answers.append(handler)

    def refuse(self, status: int, reason: str, message: str, **details: Any) -> None:
        """Answer the next request with a Status object."""
        body = {"kind": "Status", "status": "Failure", "code": status, "reason": reason,
                "message": message, "details": details}  # fmt: skip
        self.say(body, status)

    def stream(self, *pieces: bytes, cut: asyncio.Event | None = None) -> None:
        """Answer the next request piece by piece; with ``cut`` break off when that is set."""

        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            response.enable_chunked_encoding()
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            if cut:
                await cut.wait()
                assert request.transport is not None
                request.transport.close()
            return response

        self.answers.append(handler)

    def break_off(self) -> None:
        """Take the next request and end the connection without an answer."""

        async def handler(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            request.transport.close()
            await asyncio.sleep(0)
            return web.Response()

        self.answers.append(handler)

    def call(self, handler: Handler) -> None:
        """Have the next request answered by ``handler``."""
        self.answers.append(handler)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = b"" if request.headers.get("Upgrade") else await request.read()
        self.asked.append(
            Asked(
                request.method,
                request.rel_url.raw_path,
                dict(request.query),
                dict(request.headers),
                json.loads(raw) if raw else None,
            )
        )
        if not self.answers:
            return web.Response(status=500, text="the test has no answer for this request")
        return await self.answers.popleft()(request)


@asynccontextmanager
async def canned_server(ssl: Any = None) -> AsyncIterator[Canned]:
    """Run the server on a free port of the loopback interface."""
    canned = Canned()
    runner = web.ServerRunner(web.Server(canned.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl)
    await site.start()
    host, port = runner.addresses[0][:2]
    canned.url = f"{'https' if ssl else 'http'}://{host}:{port}"
    try:
        yield canned
    finally:
        await runner.cleanup()
