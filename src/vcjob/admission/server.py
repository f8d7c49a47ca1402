"""Reviews over HTTPS.

Reviews are computed in threads, so that probes and other reviews are answered while a big one is
under way. Whatever is sent gets an answer in bounded time and memory.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
from aiohttp import web

from vcjob.admission.configurations import TIMEOUT_SECONDS
from vcjob.admission.lookups import Lookups
from vcjob.admission.metrics import Metrics
from vcjob.admission.reviewing import (
    PATHS,
    NotAReview,
    Rules,
    answer,
    queue_asked_about,
    read_request,
)
from vcjob.api.problems import printable
from vcjob.controller.probes import Address, add_probes, listening
from vcjob.controller.readiness import Readiness

MOST_BYTES = 6 * 1024 * 1024
"""An update holds two objects, of which API servers take at most 3 MiB each."""
_JSON = "application/json"
_SMALL = 64 * 1024
"""Bodies up to so many bytes are taken in as they come, so that nobody can keep them waiting."""
_AT_ONCE = 16
"""Bigger bodies that are held at a time; others wait for their turn."""
_THREADS = 2
"""For small reviews, and as many for big ones, which may take seconds."""
_SHUTDOWN_SECONDS = float(TIMEOUT_SECONDS)

_log = logging.getLogger(__name__)


class Reviewer:
    """Answers requests that hold a question. ``seconds`` is how long one may take."""

    def __init__(
        self,
        rules: Rules,
        lookups: Lookups,
        metrics: Metrics,
        *,
        seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._rules = rules
        self._lookups = lookups
        self._metrics = metrics
        self._seconds = seconds
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._for_small = ThreadPoolExecutor(_THREADS, thread_name_prefix="review")
        self._for_big = ThreadPoolExecutor(_THREADS, thread_name_prefix="big-review")

    def close(self) -> None:
        """Begin no further review."""
        for threads in (self._for_small, self._for_big):
            threads.shutdown(wait=False, cancel_futures=True)

    async def review(self, request: web.Request) -> web.Response:
        """The answer, or a sentence about why there is none (400, 408, 413, 415, 500, 503)."""
        try:
            return await self._within_time(request)
        except NotAReview as refused:
            self._metrics.count(request.path, "refused")
            _log.info("%s: %s", request.path, refused)
            return web.Response(text=f"{refused}\n", status=refused.code)
        except Exception:
            self._metrics.count(request.path, "failed")
            _log.exception("%s: the review failed", request.path)
            return web.Response(text="the review failed; vcjob webhook logs why\n", status=500)

    async def _within_time(self, request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        slow = late = NotAReview("the body of the request did not end in time", 408)
        try:
            async with asyncio.timeout(self._seconds), contextlib.AsyncExitStack() as held:
                body = bytearray()
                async for piece in _pieces(request):
                    if len(body) <= _SMALL < len(body) + len(piece):
                        late = NotAReview("too many big reviews are under way", 503)
                        await held.enter_async_context(self._turn)
                        late = slow
                    body += piece
                late = NotAReview("the review took too long", 503)
                started = loop.time()
                threads = self._for_small if len(body) <= _SMALL else self._for_big
                text, allowed = await self._answer(request.path, bytes(body), threads)
        except TimeoutError as error:
            raise late from error
        result = "allowed" if allowed else "denied"
        self._metrics.count(request.path, result, loop.time() - started)
        return web.Response(body=text, content_type=_JSON)

    async def _answer(
        self, path: str, body: bytes, threads: ThreadPoolExecutor
    ) -> tuple[bytes, bool]:
        loop = asyncio.get_running_loop()
        asked = await loop.run_in_executor(threads, read_request, body)
        queue = queue_asked_about(path, asked)
        known = await self._lookups.known_about(queue) if queue else self._lookups.known()

        def compute() -> tuple[bytes, bool]:
            reviewed = answer(path, asked, self._rules, known)
            return msgspec.json.encode(reviewed), reviewed["response"]["allowed"]

        return await loop.run_in_executor(threads, compute)


async def _pieces(request: web.Request) -> AsyncIterator[bytes]:
    """The body of a request, as it comes; raises NotAReview."""
    if request.content_type != _JSON:
        shown = printable(request.content_type[:100])
        raise NotAReview(f"the body of the request must be {_JSON}, not {shown}", 415)
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":  # a small one could become any size
        shown = printable(encoding[:100])
        raise NotAReview(f"the body of the request must not be encoded ({shown})", 415)
    too_big = NotAReview(f"the body of the request is bigger than {MOST_BYTES} bytes", 413)
    if (request.content_length or 0) > MOST_BYTES:
        raise too_big
    length = 0
    try:
        while piece := await request.content.readany():
            length += len(piece)
            if length > MOST_BYTES:
                raise too_big
            yield piece
    except web.RequestPayloadError as error:
        raise NotAReview("the body of the request is no HTTP") from error
    except ConnectionError as error:
        raise NotAReview("the body of the request broke off") from error


@contextlib.asynccontextmanager
async def serve_reviews(
    address: Address, context: ssl.SSLContext, reviewer: Reviewer, readiness: Readiness
) -> AsyncIterator[int]:
    """Answer reviews while the block runs; yields the port. Raises AddressInUse.

    What is being answered when the block ends is answered first.
    """
    application = web.Application()
    for path in PATHS:
        application.router.add_post(path, reviewer.review)
    add_probes(application, readiness)
    try:
        async with listening(
            application,
            address,
            "--address",
            context=context,
            shutdown_seconds=_SHUTDOWN_SECONDS,
        ) as port:
            yield port
    finally:
        reviewer.close()
