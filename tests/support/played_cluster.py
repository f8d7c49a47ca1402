"""A cluster whose pods are played: the engine's own store and API server, and the controller.

The controller works through the same HTTP as every client. What a pod prints and which programs run
in it, the test says.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from aiohttp import WSMsgType, web

from vcjob.api.kinds import NAMESPACE, POD, POD_GROUP, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, EventType, NotFound
from vcjob.controller.controller import Controller
from vcjob.core.times import timestamp
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.server import Server
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.server import ApiServer, Door
from vcjob.local.apiserver.server import serve as serve_api
from vcjob.local.store import Store
from vcjob.local.watches import Follow, Wanted
from vcjob.plugins.registry import installed_plugins

T = TypeVar("T")
TOKEN = "for-tests-only"
Program = Callable[[list[str], bytes], tuple[int, bytes, bytes]]
"""A program in a pod: command and input in; exit code, output and errors out."""
Proxy = Callable[[int], contextlib.AbstractAsyncContextManager[int]]
"""Passes on what comes to a port of its own, which it yields."""


class CountingStore(Store):
    """A store that knows how often each kind was followed."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.follows: Counter[Kind] = Counter()
        self.more = asyncio.Event()

    def follow(self, kind: Kind, since: str, namespace: str | None, wanted: Wanted) -> Follow:
        self.follows[kind] += 1
        self.more.set()
        return super().follow(kind, since, namespace, wanted)


class Face:
    """The API of a store. ``logs`` and ``programs`` are what its pods print and run."""

    def __init__(self) -> None:
        self.store = CountingStore()
        self.logs: dict[str, bytes] = {}
        self.programs: dict[str, Program] = {}
        self.sizes: list[Object] = []
        self.ports: dict[int, Callable[[bytes], bytes]] = {}

    def doors(self) -> dict[str, Door]:
        """What answers requests about the pods."""
        return {"log": self._log, "exec": self._exec, "portforward": self._portforward}

    async def _log(
        self, request: web.BaseRequest, place: Place, asked: Query
    ) -> web.StreamResponse:
        await self.store.get(POD, place.namespace, place.name)
        printed = self.logs.get(place.name, b"")
        if "tailLines" in asked:
            count = int(asked["tailLines"])
            printed = b"".join(printed.splitlines(keepends=True)[-count:] if count else ())
        if asked.get("timestamps") == "true":
            stamp = b"2026-01-01T00:00:00.000000000Z "
            printed = b"".join(stamp + line for line in printed.splitlines(keepends=True))
        return web.Response(body=printed)

    async def _exec(
        self, request: web.BaseRequest, place: Place, asked: Query
    ) -> web.StreamResponse:
        await self.store.get(POD, place.namespace, place.name)
        channel = web.WebSocketResponse(protocols=("v5.channel.k8s.io",), max_msg_size=0)
        await channel.prepare(request)
        given = b""
        if asked["tty"] == "true":
            await channel.send_bytes(b"\x01$ ")
        if asked["stdin"] == "true":
            async for message in channel:
                number, content = message.data[0], message.data[1:]
                if number == 0:
                    given += content
                elif number == 4:
                    self.sizes.append(json.loads(content))
                if number == 255 or (asked["tty"] == "true" and given.endswith(b"\r")):
                    break
        command = request.rel_url.query.getall("command")
        code, output, errors = self.programs[command[0]](command, given)
        for number, content in ((1, output), (2, errors)):
            for start in range(0, len(content), 50_000):
                await channel.send_bytes(bytes((number,)) + content[start : start + 50_000])
        causes = [{"reason": "ExitCode", "message": str(code)}]
        status = {"status": "Failure" if code else "Success", "details": {"causes": causes}}
        await channel.send_bytes(b"\x03" + json.dumps(status).encode())
        await channel.close()
        return channel

    async def _portforward(
        self, request: web.BaseRequest, place: Place, asked: Query
    ) -> web.StreamResponse:
        await self.store.get(POD, place.namespace, place.name)
        channel = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await channel.prepare(request)
        port = int(asked["ports"])
        head = port.to_bytes(2, "little")
        await channel.send_bytes(b"\x00" + head)
        if port not in self.ports:
            await channel.send_bytes(b"\x01" + head + b"connection refused")
        else:
            message = await channel.receive()
            if message.type is WSMsgType.BINARY:
                await channel.send_bytes(b"\x00" + self.ports[port](message.data[1:]))
        await channel.close()
        return channel

    async def play(self) -> None:
        """Be scheduler and node: admit every gang, run every pod, end those that are deleted."""
        while True:
            for group in (await self.store.list(POD_GROUP)).items:
                if (group.get("status") or {}).get("phase") != "Inqueue":
                    await self.store.patch(
                        POD_GROUP, group["metadata"]["namespace"], group["metadata"]["name"],
                        {"status": {"phase": "Inqueue"}})  # fmt: skip
            for pod in (await self.store.list(POD)).items:
                place = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                if "deletionTimestamp" in pod["metadata"]:
                    await self.store.delete(POD, *place, grace_period_seconds=0)
                elif not pod["spec"].get("nodeName"):
                    await self.store.patch(POD, *place, {"spec": {"nodeName": "node"}})
                    await self.set_pod(*place, "Running", {"running": {}})
            await asyncio.sleep(0.01)

    async def followed(self, kind: Kind, times: int) -> None:
        """Return when a kind has been followed so often."""
        while self.store.follows[kind] < times:
            self.store.more.clear()
            await self.store.more.wait()

    async def set_pod(self, namespace: str, name: str, phase: str, state: Object) -> None:
        """Be the node: tell how a pod and its only container are."""
        container = {"name": "main", "state": state, "ready": phase == "Running",
                     "restartCount": 0}  # fmt: skip
        status = {"status": {"phase": phase, "podIP": "10.1.0.2", "containerStatuses": [container]}}
        await self.store.patch(POD, namespace, name, status, subresource="status")

    async def end_pod(self, name: str, exit_code: int = 0, namespace: str = "default") -> None:
        """Be the node: a pod's program has ended."""
        ended = {"exitCode": exit_code, "finishedAt": timestamp(time.time())}
        phase = "Failed" if exit_code else "Succeeded"
        await self.set_pod(namespace, name, phase, {"terminated": ended})


@contextlib.asynccontextmanager
async def serve(
    face: Face,
    through: Proxy | None = None,
    around: Callable[[KubernetesCluster], Cluster] = lambda cluster: cluster,
) -> AsyncIterator[Server]:
    """Serve a face on the loopback interface, with a controller that works through it.

    ``through`` is a proxy before the server, given the server's port. ``around`` gives the
    controller another cluster around the one that it would work on.
    """
    plugins = installed_plugins(third_party=False)
    api = ApiServer(face.store, TOKEN, doors=face.doors(), plugins=plugins)
    for name in ("default", "kube-system"):
        await face.store.create(NAMESPACE, {"metadata": {"name": name}})
    for name, spec in (("root", {}), ("default", {"parent": "root"})):
        await face.store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    async with contextlib.AsyncExitStack() as stack:
        port = await stack.enter_async_context(serve_api(api, ssl_context=None))
        if through:
            # The server answers only under its own address, which is now the proxy's.
            port = api.port = await stack.enter_async_context(through(port))
        server = Server(url=f"http://127.0.0.1:{port}", name="test", token=TOKEN)
        cluster = await stack.enter_async_context(KubernetesCluster.of(server))
        controller = Controller(around(cluster), plugins)
        tasks = [asyncio.create_task(controller.run()), asyncio.create_task(face.play())]
        try:
            yield server
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
    faults = [one for one in ended if not isinstance(one, asyncio.CancelledError)]
    assert not faults, faults


class Elsewhere:
    """A served face in a thread with its own event loop, so that commands can run in this one."""

    def __init__(self, face: Face, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.face = face
        self.server = server
        self._loop = loop

    def do(self, work: Awaitable[T]) -> T:
        """Have something done there."""

        async def wait() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result(20)

    def until(self, kind: Kind, name: str, right: Callable[[Any], bool]) -> Object:
        """Wait until an object is as it should be."""

        async def wait() -> Object:
            since = str(self.face.store.version)
            with contextlib.suppress(NotFound):
                obj = await self.face.store.get(kind, "default", name)
                if right(obj):
                    return obj
            async for event in self.face.store.watch(kind, since, "default"):
                obj = event.object
                there = event.type is not EventType.DELETED and obj["metadata"]["name"] == name
                if there and right(obj):
                    return obj
            raise AssertionError("the watch ended")

        return self.do(wait())


@contextlib.contextmanager
def served_elsewhere() -> Iterator[Elsewhere]:
    """Serve a face in a thread of its own."""
    started: Future[Elsewhere] = Future()
    stop = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        face = Face()
        loops.append(asyncio.get_running_loop())
        try:
            async with serve(face) as server:
                started.set_result(Elsewhere(face, server, loops[0]))
                await stop.wait()
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            raise

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    try:
        yield started.result(20)
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(20)
