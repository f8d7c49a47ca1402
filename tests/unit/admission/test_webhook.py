"""``vcjob webhook`` put together: what it needs before it is ready, and how it ends."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from vcjob.admission import webhook
from vcjob.admission.configurations import webhook_configurations
from vcjob.admission.webhook import WebhookOptions, run_webhook
from vcjob.api.kinds import MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION
from vcjob.controller.probes import AddressInUse
from vcjob.local.store import Store

ANY = ("127.0.0.1", 0)
OPTIONS = WebhookOptions(namespace="vcjob-system", address=ANY, health_address=ANY)
LONG = 60.0


class Running:
    """A webhook in this process."""

    def __init__(self, caplog: pytest.LogCaptureFixture, options: WebhookOptions) -> None:
        self._caplog = caplog
        self._options = options
        self.task: asyncio.Task[None] | None = None

    async def start(self, session: aiohttp.ClientSession) -> None:
        store = Store(lambda: 0.0)
        kinds = (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)
        for kind, one in zip(kinds, webhook_configurations("vcjob-system"), strict=True):
            await store.create(kind, one)
        self._session = session
        self.task = asyncio.create_task(run_webhook(store, self._options))

    async def readyz(self, *, until: int) -> str:
        """What /readyz says once its answer has this code."""
        while not (port := re.search(r"probes and metrics at port (\d+)", self._caplog.text)):
            await self._go_on()
        while True:
            async with self._session.get(f"http://127.0.0.1:{port[1]}/readyz") as answer:
                if answer.status == until:
                    return await answer.text()
            await self._go_on()

    async def _go_on(self) -> None:
        assert self.task is not None
        if self.task.done():
            await self.task
            raise AssertionError("it has ended")
        await asyncio.sleep(0)


@asynccontextmanager
async def started(
    caplog: pytest.LogCaptureFixture, options: WebhookOptions
) -> AsyncIterator[Running]:
    running = Running(caplog, options)
    async with aiohttp.ClientSession() as session:
        await running.start(session)
        assert running.task is not None
        try:
            yield running
        finally:
            running.task.cancel()
            await asyncio.gather(running.task, return_exceptions=True)


def run(
    scenario: Callable[[Running], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
    options: WebhookOptions = OPTIONS,
) -> None:
    async def whole() -> None:
        async with started(caplog, options) as running:
            await scenario(running)

    caplog.set_level("INFO")
    asyncio.run(asyncio.wait_for(whole(), LONG))


def test_it_is_ready_with_a_certificate_and_what_it_must_know(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(running: Running) -> None:
        text = await running.readyz(until=200)
        assert text.startswith("ready\ncertificate: valid until ")

    run(scenario, caplog)


def test_given_files_are_shown_instead_of_an_own_certificate(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def scenario(running: Running) -> None:
        text = await running.readyz(until=503)
        assert f"{tmp_path}/a.crt cannot be read" in text

    certificate, key = tmp_path / "a.crt", tmp_path / "a.key"
    options = WebhookOptions(
        namespace="n", address=ANY, health_address=ANY, certificate=certificate, key=key
    )
    run(scenario, caplog, options)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_ends_and_after_sigterm_says_so_first(
    number: signal.Signals, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    drained = asyncio.Event()

    async def drain(seconds: float, sleep: Callable[[float], Awaitable[None]]) -> None:
        await (drained.wait() if seconds == webhook.DRAINED_FOR else sleep(seconds))

    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: drain(seconds, sleep))

    async def scenario(running: Running) -> None:
        await running.readyz(until=200)
        os.kill(os.getpid(), number)
        if number == signal.SIGTERM:
            assert "process: it ends" in await running.readyz(until=503)
            drained.set()
        assert running.task is not None
        await running.task

    run(scenario, caplog)


def test_told_twice_it_ends_on_the_spot(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)

    async def scenario(running: Running) -> None:
        await running.readyz(until=200)
        os.kill(os.getpid(), signal.SIGTERM)
        await running.readyz(until=503)
        os.kill(os.getpid(), signal.SIGTERM)
        while not codes:
            await running._go_on()

    run(scenario, caplog)
    assert codes[0] == 128 + signal.SIGTERM


def test_an_address_that_is_taken_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        async with taken:
            port = taken.sockets[0].getsockname()[1]
            options = WebhookOptions(namespace="n", address=("127.0.0.1", port), health_address=ANY)
            with pytest.raises(AddressInUse, match=f"127.0.0.1:{port}.*--address"):
                await run_webhook(Store(lambda: 0.0), options)

    asyncio.run(scenario())
