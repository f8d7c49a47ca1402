"""Whatever is sent gets an answer in bounded time and memory, and disturbs nobody else."""

import asyncio
import io
import json
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any

import aiohttp
import pytest
from reviews import RULES, review

from vcjob.admission import server
from vcjob.admission.lookups import Lookups
from vcjob.admission.metrics import Metrics
from vcjob.admission.reviewing import Known, Request
from vcjob.admission.server import MOST_BYTES, Reviewer, serve_reviews
from vcjob.controller.certificates import Made, make_certificate, server_context, use_certificate
from vcjob.controller.readiness import Readiness
from vcjob.core.check import Lookup
from vcjob.local.store import Store

HOST, PATH = "localhost", "/jobs/validate"
WHOLE = json.dumps(review({"metadata": {"name": "j"}})).encode()
JSON = "application/json"
LONG = 60.0
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@cache
def certificate() -> Made:
    return make_certificate((HOST,), datetime.now(UTC), owner="a test")


class Counted(Metrics):
    def __init__(self) -> None:
        super().__init__()
        self.results: list[str] = []
        self.any = asyncio.Event()

    def count(self, path: str, result: str, seconds: float | None = None) -> None:
        self.results.append(result)
        self.any.set()


class Served:
    """A server of reviews, and who asks it."""

    def __init__(self, port: int, session: aiohttp.ClientSession, counted: Counted) -> None:
        self.port, self.counted = port, counted
        self._session = session

    async def ask(self, body: bytes = WHOLE, **headers: str) -> tuple[int, str]:
        given = {"Content-Type": JSON, **{key.replace("_", "-"): headers[key] for key in headers}}
        url = f"https://{HOST}:{self.port}{PATH}"
        async with self._session.post(
            url, data=io.BytesIO(body), headers=given, ssl=trusting()
        ) as answer:
            return answer.status, await answer.text()

    @asynccontextmanager
    async def begun(self, sent: bytes, length: int) -> AsyncIterator[Connection]:
        """A request whose body does not end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=trusting(),
                                                       server_hostname=HOST)  # fmt: skip
        head = f"POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {JSON}\r\n"
        writer.write(f"{head}Content-Length: {length}\r\n\r\n".encode() + sent)
        await writer.drain()
        try:
            yield reader, writer
        finally:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificate().authority.decode())


@asynccontextmanager
async def served(seconds: float = LONG, counted: Counted | None = None) -> AsyncIterator[Served]:
    counted = counted or Counted()
    context = server_context()
    use_certificate(context, certificate().certificate, certificate().key)
    lookups = Lookups(Store(lambda: 0.0), Readiness())
    reviewer = Reviewer(RULES, lookups, counted, seconds=seconds)
    serving = serve_reviews(("127.0.0.1", 0), context, reviewer, Readiness())
    async with serving as port, aiohttp.ClientSession() as session:
        yield Served(port, session, counted)


def run(scenario: Callable[[Served], object], seconds: float = LONG) -> Counted:
    counted = Counted()

    async def whole() -> None:
        async with served(seconds, counted) as made:
            await scenario(made)  # type: ignore[misc]

    asyncio.run(asyncio.wait_for(whole(), 2 * LONG))
    return counted


@pytest.mark.parametrize(
    ("body", "headers", "code", "said"),
    [
        (WHOLE, {"Content_Type": "text/yaml"}, 415, "must be application/json, not text/yaml"),
        (WHOLE, {"Content_Encoding": "gzip"}, 415, "must not be encoded (gzip)"),
        (b"{", {}, 400, "is no JSON"),
        (b" " * (MOST_BYTES + 1), {}, 413, "is bigger than 6291456 bytes"),
    ],
)
def test_what_is_no_review_gets_a_sentence(
    body: bytes, headers: dict[str, str], code: int, said: str
) -> None:
    async def scenario(asked: Served) -> None:
        status, text = await asked.ask(body, **headers)
        assert (status, text.count("\n"), said in text) == (code, 1, True), text
        status, text = await asked.ask(Content_Encoding="Identity")
        assert status == 200
        assert json.loads(text)["response"]["allowed"] is False

    assert run(scenario).results == ["refused", "denied"]


def test_a_length_beyond_the_limit_is_refused_before_anything_of_it_comes() -> None:
    async def scenario(asked: Served) -> None:
        async with asked.begun(b"", MOST_BYTES + 1) as (reader, _):
            assert b" 413 " in await reader.readline()

    run(scenario)


@pytest.mark.parametrize("sent", [b"{", b" " * 100_000], ids=["small", "big"])
def test_bodies_that_do_not_end_hold_up_nobody(sent: bytes) -> None:
    async def scenario(asked: Served) -> None:
        async with AsyncExitStack() as stack:
            slow = [
                await stack.enter_async_context(asked.begun(sent, 200_000))
                for _ in range(server._AT_ONCE + 1)
            ]
            assert (await asked.ask())[0] == 200
            assert asked.counted.results == ["denied"], "none of them has been given up yet"
            answers = {(await reader.readline()).split()[1] for reader, _ in slow}
            assert b"408" in answers <= {b"408", b"503"}

    run(scenario, seconds=2.0)


def test_big_reviews_hold_up_no_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, go_on = server.answer, threading.Event()

    def slow_if_big(path: str, asked: Request, *more: Any) -> Any:
        assert len(str(asked.object)) < server._SMALL or go_on.wait(LONG)
        return answered(path, asked, *more)

    monkeypatch.setattr(server, "answer", slow_if_big)
    big = json.dumps(review({"metadata": {"name": "j" * server._SMALL}})).encode()

    async def scenario(asked: Served) -> None:
        asking = [asyncio.create_task(asked.ask(big)) for _ in range(server._AT_ONCE)]
        try:
            assert (await asked.ask())[0] == 200
        finally:
            go_on.set()
        assert {code for code, _ in await asyncio.gather(*asking)} == {200}

    run(scenario)


def test_a_body_that_breaks_off_is_nobodys_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(asked: Served) -> None:
        async with asked.begun(b"{", 1000):
            pass
        await asked.counted.any.wait()

    with caplog.at_level(logging.WARNING):
        assert run(scenario).results == ["refused"]
    assert caplog.records == []


def test_a_fault_is_told_to_who_asked_and_with_its_trace_to_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*_: object) -> None:
        raise ZeroDivisionError("somewhere")

    monkeypatch.setattr(server, "answer", faulty)

    async def scenario(asked: Served) -> None:
        assert await asked.ask() == (500, "the review failed; vcjob webhook logs why\n")

    assert run(scenario).results == ["failed"]
    assert "ZeroDivisionError: somewhere" in caplog.text


def test_what_is_being_answered_when_it_ends_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def known_about(self: Lookups, queue: str) -> Known:
            begun.set()
            await go_on.wait()
            return Known(Lookup())

        monkeypatch.setattr(Lookups, "known_about", known_about)
        async with aiohttp.ClientSession() as session:
            async with served() as made:
                asked = Served(made.port, session, made.counted)
                asking = asyncio.create_task(asked.ask())
                await begun.wait()
                asyncio.get_running_loop().call_soon(go_on.set)
            assert (await asking)[0] == 200

    asyncio.run(asyncio.wait_for(scenario(), LONG))
