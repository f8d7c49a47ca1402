"""``attach``: what is printed from now on, until the container ends."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from served import PODS, Asking, pod, served

from vcjob.local.agent.inside import Inside
from vcjob.local.agent.log_files import LogFiles
from vcjob.local.agent.logs import ContainerLog, Logs
from vcjob.local.agent.stdin import Stdin
from vcjob.local.doors.attaching import AttachDoor
from vcjob.local.store import Store


@contextlib.asynccontextmanager
async def _attached(
    directory: Path, given: Stdin | None = None, /, **query: str
) -> AsyncIterator[tuple[ContainerLog, aiohttp.ClientWebSocketResponse, Asking]]:
    logs = Logs(LogFiles(str(directory), pytest.fail, clock=lambda: 1), lambda *said: None)
    store = Store(lambda: 0.0)
    inside = Inside(None, "u/main/4", {}, stdin=given)  # type: ignore[arg-type]
    async with served(
        store=store, doors={"attach": AttachDoor(store, logs, lambda uid, container: inside)}
    ) as ask:
        (made,) = await ask.made(PODS, pod("p"))
        log = logs.open("default", "p", "main", 4, made["metadata"]["uid"])
        os.write(log.writer, b"before\n")
        async with ask.session.ws_connect(
            f"{ask.url}{PODS}/p/attach", params=query, protocols=("v5.channel.k8s.io",)
        ) as websocket:
            yield log, websocket, ask
        log.end()


def test_output_from_now_on_and_the_end(tmp_path: Path) -> None:
    async def run() -> list[bytes]:
        async with _attached(tmp_path, stdout="1") as (log, websocket, _):
            await asyncio.sleep(0)
            os.write(log.writer, b"now\n")
            said = [(await websocket.receive()).data]
            os.write(log.writer, b"last words")
            await log.finished()
            return [*said, *[message.data async for message in websocket]]

    first, *middle, last = asyncio.run(asyncio.wait_for(run(), 30))
    assert b"".join((first, *middle)).replace(b"\x01", b"").endswith(b"now\nlast words")
    assert json.loads(last[1:])["status"] == "Success"


@pytest.mark.parametrize("once", [True, False])
def test_what_the_client_types_reaches_a_container_that_asked_for_it(
    tmp_path: Path, once: bool
) -> None:
    async def run() -> list[bytes]:
        stdin = Stdin(once=once)
        async with _attached(tmp_path, stdin, stdin="1", stdout="1") as (_, websocket, ask):
            await websocket.send_bytes(b"\0first\n")
            read = [await asyncio.to_thread(os.read, stdin.given, 100)]
            await websocket.close()
            async with ask.session.ws_connect(
                f"{ask.url}{PODS}/p/attach", params={"stdin": "1"}
            ) as again:
                await again.send_bytes(b"\0second\n")
                read.append(await asyncio.to_thread(os.read, stdin.given, 100))
        stdin.close()
        return read

    read = asyncio.run(asyncio.wait_for(run(), 30))
    assert read == [b"first\n", b"" if once else b"second\n"]


def test_a_client_that_goes_leaves_the_container_alone(tmp_path: Path) -> None:
    async def run() -> bytes:
        async with _attached(tmp_path, stdout="1") as (log, websocket, _):
            await websocket.close()
            os.write(log.writer, b"goes on\n")
            await log.finished()
            return log.tail()

    assert asyncio.run(asyncio.wait_for(run(), 30)).endswith(b"goes on\n")
