"""Speed and memory of the engine as a service: one line a figure, with its target beside it.

    .venv/bin/python bench/apiserver.py [--quick]

Drives ``vcjob engine start`` as a user would, with its TLS, its disk, its scheduler and its agent,
and asks it as any client does. The pods are the workers that the guide's Job becomes, with a
scheduling gate, so that none starts. Client and engine share the machine. All figures are of this
run on this machine; targets are for two cores. Ends with 1 if one is missed.
"""

import argparse
import asyncio
import base64
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml
from figures import Figure

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import POD
from vcjob.api.types import Object
from vcjob.core.render import blueprint_to_render
from vcjob.plugins.registry import installed_plugins

VCJOB = str(Path(sys.executable).with_name("vcjob"))
GUIDE = Path(__file__).parent.parent / "examples" / "tensorflow-dist-mnist" / "job.yaml"
PODS = "/api/v1/namespaces/default/pods"
GATES = [{"name": "bench.vcjob/never"}]
MERGE_PATCH = "application/merge-patch+json"
IN_FLIGHT = 32
STARTS = 5


class Engine:
    """An engine with a state directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._environment = {**os.environ, "XDG_STATE_HOME": str(directory)}
        self._home = directory / "vcjob" / "engine"

    def start(self) -> float:
        """Start it; returns the seconds until it says that it is ready."""
        started = time.perf_counter()
        self._vcjob("start", "--detach")
        return time.perf_counter() - started

    def stop(self) -> None:
        """End it."""
        self._vcjob("stop", "--now")

    def memory(self) -> float:
        """What the engine's process has in memory, in MB."""
        pid = (self._home / "lock").read_text().strip()
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("the kernel tells no VmRSS")

    def measure(self, question: Callable[[aiohttp.ClientSession], Awaitable[Any]]) -> Any:
        """Have a client ask it something."""
        return asyncio.run(self._asked(question))

    async def _asked(self, question: Callable[[aiohttp.ClientSession], Awaitable[Any]]) -> Any:
        config = yaml.safe_load((self._home / "kubeconfig").read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        headers = {
            "Authorization": f"Bearer {user['token']}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }
        async with aiohttp.ClientSession(
            cluster["server"],
            headers=headers,
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            auto_decompress=False,
            read_bufsize=1 << 20,
        ) as session:
            return await question(session)

    def _vcjob(self, *arguments: str) -> None:
        subprocess.run(
            [VCJOB, "engine", *arguments], env=self._environment, check=True, capture_output=True
        )


def workers(count: int) -> Iterator[bytes]:
    """The worker pods of the guide's Job, as a client sends them."""
    job = yaml.safe_load(GUIDE.read_text())
    for task in job["spec"]["tasks"]:
        if task["name"] == "worker":
            task["replicas"] = count
    plugins = installed_plugins(third_party=False)
    blueprint = blueprint_to_render(apply_defaults(job, requires=plugins.requires), plugins)
    for pod in blueprint.pods():
        if pod["metadata"]["labels"]["volcano.sh/task-spec"] == "worker":
            yield msgspec.json.encode(_gated(pod))


def _gated(pod: Object) -> Object:
    """A pod that is not scheduled and that no Job owns: it is the bench's alone."""
    metadata = {k: v for k, v in pod["metadata"].items() if k != "ownerReferences"}
    assert pod["kind"] == POD.kind
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "schedulingGates": GATES}}


async def create_all(session: aiohttp.ClientSession, bodies: Iterator[bytes]) -> float:
    """Create all; returns creates a second."""
    done = 0

    async def work() -> None:
        nonlocal done
        for body in bodies:
            async with session.post(PODS, data=body) as response:
                answer = await response.read()
                assert response.status == 201, answer
            done += 1

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return done / (time.perf_counter() - started)


async def list_all(session: aiohttp.ClientSession, encoding: str) -> float:
    """Seconds until the last byte of the list of all pods has come."""
    started = time.perf_counter()
    async with session.get(PODS, headers={"Accept-Encoding": encoding}) as response:
        assert response.status == 200
        async for _ in response.content.iter_any():
            pass
    return time.perf_counter() - started


async def watch_all(
    session: aiohttp.ClientSession, watchers: int, changes: int
) -> tuple[float, int]:
    """Change pods while watchers watch; returns events a second, and how many went missing."""
    async with session.get(PODS, params={"limit": str(changes)}) as response:
        listed = msgspec.json.decode(await response.read())
    names = [pod["metadata"]["name"] for pod in listed["items"]]
    query = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
    query |= {"timeoutSeconds": "60"}
    begun = asyncio.Semaphore(0)

    async def watch() -> int:
        missing = set(names)
        async with session.get(PODS, params=query) as response:
            begun.release()
            while missing and (line := await response.content.readline()):
                event = msgspec.json.decode(line, type=_Event)
                assert event.type == "MODIFIED", line
                missing.discard(event.object.metadata.name)
        return len(missing)

    watches = [asyncio.create_task(watch()) for _ in range(watchers)]
    for _ in watches:
        await begun.acquire()
    to_change = iter(names)

    async def change() -> None:
        patch = b'{"metadata":{"labels":{"changed":"yes"}}}'
        headers = {"Content-Type": MERGE_PATCH}
        for name in to_change:
            async with session.patch(f"{PODS}/{name}", data=patch, headers=headers) as response:
                assert response.status == 200, await response.text()

    started = time.perf_counter()
    await asyncio.gather(*(change() for _ in range(IN_FLIGHT)))
    missing = sum(await asyncio.gather(*watches))
    return (watchers * len(names) - missing) / (time.perf_counter() - started), missing


class _Metadata(msgspec.Struct):
    name: str


class _Object(msgspec.Struct):
    metadata: _Metadata


class _Event(msgspec.Struct):
    type: str
    object: _Object


def figures(engine: Engine, pods: int, watchers: int, changes: int) -> Iterator[Figure]:
    """Every figure as it is measured."""
    starts = []
    for _ in range(STARTS):
        starts.append(engine.start())
        engine.stop()
    yield Figure("engine start, ready", statistics.median(starts), "s", most=1.5)

    engine.start()
    before = engine.memory()
    bodies = list(workers(pods))
    rate = engine.measure(lambda session: create_all(session, iter(bodies)))
    yield Figure(f"creates of pods, {IN_FLIGHT} in flight", rate, "/s", least=1000)
    share = pods / 10_000
    grown = engine.memory() - before
    yield Figure(f"growth by {pods:,} of the guide's workers", grown, "MB", most=80 * share)
    for encoding in ("identity", "gzip"):
        seconds = [engine.measure(partial(list_all, encoding=encoding)) for _ in range(3)]
        found = statistics.median(seconds)
        yield Figure(f"list of {pods:,} pods, {encoding}", found, "s", most=0.5 * share)
    told, missing = engine.measure(lambda session: watch_all(session, watchers, changes))
    yield Figure(f"events to {watchers} watchers of {changes} pods", told, "/s")
    yield Figure("events that a watcher missed", missing, "", most=0)

    engine.stop()
    starts = []
    for _ in range(STARTS):
        starts.append(engine.start())
        engine.stop()
    found = statistics.median(starts)
    yield Figure(f"engine start, {pods:,} objects on disk", found, "s", most=3)


def main() -> int:
    """Print every figure; returns 1 if one misses its target."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the pods and watchers")
    quick = parser.parse_args().quick
    pods, watchers, changes = (1_000, 10, 100) if quick else (10_000, 100, 1_000)
    missed = False
    with tempfile.TemporaryDirectory() as directory:
        engine = Engine(Path(directory))
        try:
            for figure in figures(engine, pods, watchers, changes):
                print(figure, flush=True)
                missed = missed or figure.missed
        finally:
            engine.stop()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
