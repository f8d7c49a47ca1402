"""The store behind just enough of a Kubernetes API for clients of ours, with pods that are played.

The store and the controller are the real ones; the controller works through the same HTTP as every
client. What a pod prints and which programs run in it, the test says.
"""

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec
from aiohttp import WSMsgType, web

from vcjob.api.kinds import ALL, POD, POD_GROUP, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    ClusterError,
    Conflict,
    EventType,
    Gone,
    Invalid,
    NotFound,
)
from vcjob.controller.controller import Controller
from vcjob.core.times import timestamp
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import Server
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins

T = TypeVar("T")
Program = Callable[[list[str], bytes], tuple[int, bytes, bytes]]
"""A program in a pod: command and input in; exit code, output and errors out."""

_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<subresource>[a-z]+))?)?"
)
_CODES = {
    NotFound: (404, "NotFound"),
    AlreadyExists: (409, "AlreadyExists"),
    Conflict: (409, "Conflict"),
    Gone: (410, "Expired"),
    Invalid: (422, "Invalid"),
}


class Face:
    """The API of a store. ``logs`` and ``programs`` are what its pods print and run."""

    def __init__(self) -> None:
        self.store = Store(time.time)
        self.logs: dict[str, bytes] = {}
        self.programs: dict[str, Program] = {}
        self.ports: dict[int, Callable[[bytes], bytes]] = {}
        self.requests: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        found = _PATH.fullmatch(request.path)
        kind = found and next(
            (k for k in ALL if k.plural == found["plural"] and k.group == (found["group"] or "")),
            None,
        )
        if not found or not kind:
            return web.Response(status=404, text="404 page not found")
        self.requests.append(f"{request.method} {request.path}")
        try:
            return await self._answer(request, kind, found)
        except ClusterError as error:
            code, reason = _CODES.get(type(error), (500, "InternalError"))
            details = {"name": found["name"] or "x"}
            return web.json_response(
                {"kind": "Status", "code": code, "reason": reason, "message": str(error),
                 "details": details}, status=code)  # fmt: skip

    async def _answer(
        self, request: web.Request, kind: Kind, found: "re.Match[str]"
    ) -> web.StreamResponse:
        namespace, name, sub = found["namespace"], found["name"], found["subresource"] or ""
        if sub in ("exec", "portforward", "log"):
            await self.store.get(kind, namespace, name)
            return await getattr(self, f"_{sub}")(request, name)  # type: ignore[no-any-return]
        if request.method == "GET" and "watch" in request.query:
            return await self._watch(request, kind, namespace)
        if request.method == "GET":
            return await self._read(request, kind, namespace, name)
        body = await request.json()
        if request.method == "POST":
            return web.json_response(await self.store.create(kind, body), status=201)
        if request.method == "PATCH":
            metadata = body.get("metadata") or {}
            stored = await self.store.patch(
                kind, namespace, name, body, subresource=sub, uid=metadata.pop("uid", ""),
                resource_version=metadata.pop("resourceVersion", ""))  # fmt: skip
            return web.json_response(stored)
        await self.store.delete(
            kind, namespace, name, uid=(body.get("preconditions") or {}).get("uid", ""),
            grace_period_seconds=body.get("gracePeriodSeconds"),
            propagation=body["propagationPolicy"])  # fmt: skip
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _read(
        self, request: web.Request, kind: Kind, namespace: str | None, name: str | None
    ) -> web.Response:
        if name:
            items, version = [await self.store.get(kind, namespace or "", name)], ""
        else:
            listed = await self.store.list(kind, namespace, _labels(request))
            items, version = listed.items, listed.resource_version
        if "as=Table" in request.headers["Accept"]:
            columns = [{"name": "Name", "type": "string", "priority": 0},
                       {"name": "UID", "type": "string", "priority": 1}]  # fmt: skip
            rows = [{"cells": [i["metadata"]["name"], i["metadata"]["uid"]],
                     "object": {"metadata": i["metadata"]}} for i in items]  # fmt: skip
            return web.json_response({"kind": "Table", "columnDefinitions": columns, "rows": rows})
        if name:
            return web.json_response(items[0])
        return web.json_response({"metadata": {"resourceVersion": version}, "items": items})

    async def _watch(
        self, request: web.Request, kind: Kind, namespace: str | None
    ) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        since = request.query["resourceVersion"]
        with contextlib.suppress(ConnectionError):  # who watched has gone
            async for event in self.store.watch(kind, since, namespace, _labels(request)):
                line = msgspec.json.encode({"type": event.type, "object": event.object})
                await response.write(line + b"\n")
        return response

    async def _log(self, request: web.Request, name: str) -> web.Response:
        printed = self.logs.get(name, b"")
        if "tailLines" in request.query:
            count = int(request.query["tailLines"])
            printed = b"".join(printed.splitlines(keepends=True)[-count:])
        return web.Response(body=printed)

    async def _exec(self, request: web.Request, name: str) -> web.StreamResponse:
        channel = web.WebSocketResponse(protocols=("v5.channel.k8s.io",), max_msg_size=0)
        await channel.prepare(request)
        given = b""
        if request.query["stdin"] == "true":
            async for message in channel:
                if message.data[0] == 255:
                    break
                given += message.data[1:]
        command = request.query.getall("command")
        code, output, errors = self.programs[command[0]](command, given)
        for number, content in ((1, output), (2, errors)):
            for start in range(0, len(content), 50_000):
                await channel.send_bytes(bytes((number,)) + content[start : start + 50_000])
        causes = [{"reason": "ExitCode", "message": str(code)}]
        status = {"status": "Failure" if code else "Success", "details": {"causes": causes}}
        await channel.send_bytes(b"\x03" + json.dumps(status).encode())
        await channel.close()
        return channel

    async def _portforward(self, request: web.Request, name: str) -> web.StreamResponse:
        channel = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await channel.prepare(request)
        port = int(request.query["ports"])
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


def _labels(request: web.Request) -> dict[str, str] | None:
    text = request.query.get("labelSelector", "")
    return dict(part.split("=", 1) for part in text.split(",")) if text else None


@contextlib.asynccontextmanager
async def serve(face: Face) -> AsyncIterator[Server]:
    """Serve a face on the loopback interface, with a controller that works through it."""
    runner = web.ServerRunner(web.Server(face.handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server = Server(url=f"http://{host}:{port}", name="test")
    for name, spec in (("root", {}), ("default", {"parent": "root"})):
        await face.store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    cluster = KubernetesCluster.of(server)
    controller = Controller(cluster, installed_plugins(third_party=False))
    tasks = [asyncio.create_task(controller.run()), asyncio.create_task(face.play())]
    try:
        yield server
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await cluster.connection.close()
        await runner.cleanup()


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
