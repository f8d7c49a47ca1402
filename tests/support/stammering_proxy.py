"""An HTTP proxy whose watches stammer: old events come again, events come late, lines are cut."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

FAULTS = ("again", "old again", "late", "cut")


class Stammer:
    """Which fault comes next, drawn by ``numbers``; ``made`` counts them."""

    def __init__(self, numbers: random.Random, share: float) -> None:
        self.made: Counter[str] = Counter()
        self._numbers = numbers
        self._share = share

    def spoil(self, line: bytes, before: list[bytes]) -> tuple[str, bytes]:
        """What comes of a line of a watch, ``before`` which others came: a fault, and the bytes."""
        if self._numbers.random() >= self._share:
            return "", line
        fault = self._numbers.choice(FAULTS)
        self.made[fault] += 1
        match fault:
            case "again":
                line += line
            case "old again" if before:
                line += self._numbers.choice(before)
            case "cut":
                line = line[: self._numbers.randrange(len(line))]
        return fault, line


@contextlib.asynccontextmanager
async def stammering_proxy(port: int, stammer: Stammer) -> AsyncIterator[int]:
    """Pass requests on to ``port``; yields the proxy's own port."""
    async with aiohttp.ClientSession() as session:

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            asked = session.request(
                request.method,
                f"http://127.0.0.1:{port}{request.rel_url}",
                data=await request.read(),
                headers=request.headers,
                auto_decompress=False,
            )
            async with asked as answer:
                headers = {"Content-Type": answer.headers.get("Content-Type", "text/plain")}
                if request.rel_url.query.get("watch") != "true" or answer.status != 200:
                    body = await answer.read()
                    return web.Response(status=answer.status, body=body, headers=headers)
                return await stutter(request, web.StreamResponse(headers=headers), answer)

        async def stutter(
            request: web.BaseRequest, response: web.StreamResponse, answer: aiohttp.ClientResponse
        ) -> web.StreamResponse:
            await response.prepare(request)
            before: list[bytes] = []
            async for line in answer.content:
                fault, spoilt = stammer.spoil(line, before)
                before.append(line)
                if fault == "late":
                    await asyncio.sleep(0.02)
                await response.write(spoilt)
                if fault == "cut":
                    assert request.transport
                    request.transport.close()
                    break
            return response

        runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()
