"""What an engine has its controller follow: more than one on a cluster does."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from cli_runs import job, task

from vcjob.api.kinds import JOB, SERVICE
from vcjob.controller import controller
from vcjob.local.engine import LocalEngine
from vcjob.local.options import EngineOptions

pytestmark = pytest.mark.local


def test_a_job_goes_on_as_soon_as_what_has_its_name_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # What is seen to go is all that can bring the Job back: its next try is never.
    monkeypatch.setattr(controller, "pause_after", lambda *_, **__: 3600.0)
    engine = LocalEngine(EngineOptions())
    engine.prepare()

    async def story() -> None:
        metadata = {"name": "demo", "namespace": "default"}
        await engine.cluster.create(SERVICE, {"metadata": metadata, "spec": {}})
        await engine.submit([job("demo", task("worker", ("true",)), plugins={"svc": []})])
        async for change in engine.cluster.watch(JOB, "0"):
            state = (change.object.get("status") or {}).get("state", {})
            if state.get("reason") == "NameTaken":
                break
        await engine.cluster.delete(SERVICE, "default", "demo")
        async for change in engine.cluster.watch(JOB, "0"):
            state = (change.object.get("status") or {}).get("state", {})
            if state.get("phase") == "Completed":
                return

    async def main() -> None:
        async with engine, asyncio.timeout(30):
            await story()

    asyncio.run(main())


def children(process: int) -> list[int]:
    return [
        int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def is_starter(process: int) -> bool:
    return b"vcjob.local.node.starter" in Path(f"/proc/{process}/cmdline").read_bytes()


def test_without_its_name_server_an_engine_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = set(children(os.getpid()))
    engine = LocalEngine(EngineOptions())
    engine.prepare()

    async def main() -> None:
        async with engine, asyncio.timeout(30):
            [keeper] = set(children(os.getpid())) - before
            [first] = children(keeper)
            for one in children(first):
                if not is_starter(one):
                    os.kill(one, signal.SIGKILL)
            assert await engine.lost == "the process that looks up names for pods ended"

    asyncio.run(main())
