"""How fast the engine's API server is: creates, a long list, many watches.

    python bench/apiserver.py [--pods N] [--watchers N]

Nothing is started: server and client share this machine, the server in a process of its own with
TLS left out. Figures are of one run.
"""

import argparse
import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from vcjob.api.kinds import NAMESPACE
from vcjob.local.apiserver.server import ApiServer, serve
from vcjob.local.store import Store

TOKEN = "bench"
IN_FLIGHT = 32
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def pod(name: str) -> dict[str, Any]:
    variables = [{"name": f"VC_WORKER_HOSTS_{i}", "value": f"train-worker-{i}"} for i in range(8)]
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1"], "env": variables}
    return {
        "metadata": {"name": name, "labels": {"volcano.sh/job-name": "train"}},
        "spec": {
            "restartPolicy": "Never",
            "schedulingGates": [{"name": "bench"}],
            "containers": [container],
        },
    }


def run_server(channel: Connection) -> None:
    async def run() -> None:
        store = Store(time.time)
        await store.create(NAMESPACE, {"metadata": {"name": "default"}})
        async with serve(ApiServer(store, TOKEN), ssl_context=None) as port:
            channel.send(port)
            await asyncio.Event().wait()

    asyncio.run(run())


def memory(pid: int) -> int:
    """Resident memory of a process in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


async def create_all(session: aiohttp.ClientSession, count: int) -> float:
    names = iter(range(count))

    async def work() -> None:
        for number in names:
            body = msgspec.json.encode(pod(f"p-{number}"))
            async with session.post(PODS, data=body) as response:
                assert response.status == 201, await response.text()
                await response.read()

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return count / (time.perf_counter() - start)


async def list_all(session: aiohttp.ClientSession, encoding: str) -> tuple[float, int]:
    start = time.perf_counter()
    size = 0
    async with session.get(PODS, headers={"Accept-Encoding": encoding}) as response:
        async for piece in response.content.iter_any():
            size += len(piece)
    return time.perf_counter() - start, size


async def watch_all(session: aiohttp.ClientSession, watchers: int, changes: int) -> float:
    async with session.get(PODS, params={"limit": "1"}) as response:
        version = (await response.json())["metadata"]["resourceVersion"]
    begun = asyncio.Semaphore(0)

    async def watch() -> int:
        query = {"watch": "1", "resourceVersion": version}
        async with session.get(PODS, params=query) as response:
            begun.release()
            for _ in range(changes):
                event = await response.content.readline()
                assert event.startswith(b'{"type":"MODIFIED"'), event[:100]
        return changes

    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    for _ in range(watchers):
        await begun.acquire()
    names = iter(range(changes))

    async def change() -> None:
        for number in names:
            patch = b'{"metadata":{"labels":{"changed":"yes"}}}'
            headers = {"Content-Type": MERGE}
            async with session.patch(f"{PODS}/p-{number}", data=patch, headers=headers) as response:
                assert response.status == 200

    start = time.perf_counter()
    await asyncio.gather(*(change() for _ in range(IN_FLIGHT)))
    told = sum(await asyncio.gather(*tasks))
    assert told == watchers * changes
    return told / (time.perf_counter() - start)


async def measure(port: int, pid: int, pods: int, watchers: int) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(
        f"http://127.0.0.1:{port}",
        headers=headers,
        auto_decompress=False,
        connector=aiohttp.TCPConnector(limit=0),
        read_bufsize=1 << 20,
    ) as session:
        before = memory(pid)
        print(f"creates/s, {IN_FLIGHT} in flight: {await create_all(session, pods):.0f}")
        print(f"memory for {pods} pods: {(memory(pid) - before) / 1024:.0f} MB")
        for encoding in ("identity", "gzip"):
            seconds, size = await list_all(session, encoding)
            print(f"list of {pods} pods, {encoding}: {seconds:.2f} s, {size / 1e6:.1f} MB")
        rate = await watch_all(session, watchers, min(pods, 1000))
        print(f"events/s to {watchers} watches, none lost: {rate:.0f}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pods", type=int, default=10_000)
    arguments.add_argument("--watchers", type=int, default=100)
    given = arguments.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=run_server, args=(theirs,))
    server.start()
    try:
        assert server.pid is not None
        asyncio.run(measure(ours.recv(), server.pid, given.pods, given.watchers))
    finally:
        server.kill()
        server.join()


if __name__ == "__main__":
    main()
