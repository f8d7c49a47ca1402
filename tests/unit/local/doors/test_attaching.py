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
from vcjob.local.agent.logs import ContainerLog, LogFiles, Logs
from vcjob.local.doors.attaching import AttachDoor
from vcjob.local.store import Store


@contextlib.asynccontextmanager
async def _attached(
    directory: Path, **query: str
) -> AsyncIterator[tuple[ContainerLog, aiohttp.ClientWebSocketResponse, Asking]]:
    logs = Logs(LogFiles(str(directory), pytest.fail, clock=lambda: 1), lambda *said: None)
    store = Store(lambda: 0.0)
    inside = Inside(None, "u/main/4", {})  # type: ignore[arg-type]
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


def test_a_client_that_goes_leaves_the_container_alone(tmp_path: Path) -> None:
    async def run() -> bytes:
        async with _attached(tmp_path, stdout="1") as (log, websocket, _):
            await websocket.close()
            os.write(log.writer, b"goes on\n")
            await log.finished()
            return log.tail()

    assert asyncio.run(asyncio.wait_for(run(), 30)).endswith(b"goes on\n")
