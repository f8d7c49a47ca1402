"""An HTTP proxy that loses requests and answers, repeats, delays and refuses them."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import aiohttp
from aiohttp import web

FAULTS = ("request lost", "answer lost", "sent twice", "delayed", "busy", "failed")


@contextlib.asynccontextmanager
async def losing_proxy(
    url: str, numbers: random.Random, share: float, kinds: Sequence[str] = FAULTS
) -> AsyncIterator[tuple[str, Counter[str]]]:
    """Pass requests on to ``url``, a ``share`` of them with a fault of ``kinds``.

    Yields the proxy's own URL, and a count of the faults by name. Not for watches.
    """
    made: Counter[str] = Counter()
    async with aiohttp.ClientSession() as session:

        async def pass_on(request: web.BaseRequest, body: bytes) -> web.Response:
            headers = {key: request.headers[key] for key in ("Authorization", "Content-Type")
                       if key in request.headers}  # fmt: skip
            asked = session.request(
                request.method, url + str(request.rel_url), data=body, headers=headers
            )
            async with asked as answer:
                return web.Response(
                    status=answer.status, body=await answer.read(),
                    content_type="application/json",
                )  # fmt: skip

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            body = await request.read()
            fault = numbers.choice(kinds) if numbers.random() < share else ""
            made[fault] += 1
            if fault == "busy":
                return web.Response(status=429, headers={"Retry-After": "1"})
            if fault == "request lost":
                return _break_off(request)
            if fault == "delayed":
                await asyncio.sleep(0.02)
            if fault == "sent twice":
                await pass_on(request, body)
            answer = await pass_on(request, body)
            if fault == "answer lost":
                return _break_off(request)
            if fault == "failed":
                return web.Response(status=500)
            return answer

        async with _serve(handle) as own:
            yield own, made


def _break_off(request: web.BaseRequest) -> web.Response:
    if request.transport:
        request.transport.close()
    return web.Response()


@contextlib.asynccontextmanager
async def _serve(
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
