"""``vcjob operator`` as it runs: processes, and a cluster in a thread whose pods are played."""

import asyncio
import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import yaml
from authorizing import AuthorizingApi
from fake_kube_scheduler import KubeScheduler
from played_cluster import TOKEN, Face

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import LEASE, NAMESPACE, POD, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, NotFound
from vcjob.local.apiserver.server import serve
from vcjob.plugins.registry import installed_plugins

T = TypeVar("T")
OWN = "vcjob-system"
VOLCANO = "volcano-system"
QUICK = ("--leader-elect-lease-duration=1s", "--leader-elect-renew-deadline=0.7s",
         "--leader-elect-retry-period=0.2s")  # fmt: skip
"""Terms of the Lease with which a test need not wait long."""
_PATIENCE = 40.0
_PORT = re.compile(r"probes and metrics at (?:127\.0\.0\.1:|port )(\d+)")


def job(name: str, replicas: int = 2, **spec: Any) -> Object:
    """A Job with svc, as it is after admission."""
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    spec = {"plugins": {"svc": [], "env": []}, "tasks": [task], **spec}
    return apply_defaults({"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def phase(obj: Object) -> str:
    """A Job's phase."""
    return str(((obj.get("status") or {}).get("state") or {}).get("phase", ""))


class Cluster:
    """An API server in a thread, with schedulers and nodes played.

    ``config`` is a kubeconfig file for it. ``made`` are the names of the pods that were created, in
    order.
    """

    def __init__(self, config: Path) -> None:
        self.face = Face()
        self.store = self.face.store
        self.made: list[str] = []
        self.config = config
        self._loop = asyncio.get_running_loop()
        self.api = AuthorizingApi(
            self.store, TOKEN, doors=self.face.doors(), plugins=installed_plugins(third_party=False)
        )
        self._serving = contextlib.AsyncExitStack()
        self.port = 0

    async def start(self) -> None:
        """Answer requests, always at the same port."""
        serving = serve(self.api, ssl_context=None, port=self.port)
        self.port = await self._serving.enter_async_context(serving)
        content = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        }
        self.config.write_text(yaml.safe_dump(content))

    async def stop(self) -> None:
        """Answer no longer."""
        await self._serving.aclose()

    async def be_kubelet(self) -> None:
        """Run pods that have a node."""
        async for event in self.store.watch(POD, str(self.store.version)):
            pod = event.object
            waits = (pod.get("status") or {}).get("phase", "Pending") == "Pending"
            if event.type is EventType.MODIFIED and pod["spec"].get("nodeName") and waits:
                place = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                await self.face.set_pod(*place, "Running", {"running": {}})

    async def count_pods(self) -> None:
        """Note every pod that is created."""
        async for event in self.store.watch(POD, str(self.store.version)):
            if event.type is EventType.ADDED:
                self.made.append(event.object["metadata"]["name"])

    def do(self, work: Awaitable[T]) -> T:
        """Have something done in the server's thread."""

        async def wait() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result(_PATIENCE)

    def get(self, kind: Kind, name: str, namespace: str = "default") -> Object:
        """An object as it is now."""
        return self.do(self.store.get(kind, namespace, name))

    def create(self, kind: Kind, obj: Object) -> Object:
        """Create an object."""
        return self.do(self.store.create(kind, obj))

    def until(
        self, kind: Kind, name: str, right: Callable[[Object], bool], namespace: str = "default"
    ) -> Object:
        """Wait until an object is as it should be."""

        async def wait() -> Object:
            since = str(self.store.version)
            with contextlib.suppress(NotFound):
                obj = await self.store.get(kind, namespace, name)
                if right(obj):
                    return obj
            async for event in self.store.watch(kind, since, namespace):
                there = event.type is not EventType.DELETED
                if there and event.object["metadata"]["name"] == name and right(event.object):
                    return event.object
            raise AssertionError("the watch ended")

        return self.do(wait())

    def lease(self, name: str, namespace: str, **spec: Any) -> None:
        """Write a Lease, as its holder does."""

        async def write() -> None:
            try:
                await self.store.patch(LEASE, namespace, name, {"spec": spec})
            except NotFound:
                metadata = {"name": name, "namespace": namespace}
                await self.store.create(LEASE, {"metadata": metadata, "spec": spec})

        self.do(write())


@contextlib.contextmanager
def cluster(directory: Path, *, volcano: bool = True) -> Iterator[Cluster]:
    """A cluster while the block runs, with Volcano's scheduler or with Kubernetes' own only."""
    started: Future[Cluster] = Future()
    stop = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        made = Cluster(directory / "kubeconfig")
        for name in ("default", "kube-system", OWN, VOLCANO):
            await made.store.create(NAMESPACE, {"metadata": {"name": name}})
        await made.start()
        playing = [made.count_pods]
        if volcano:
            playing.append(made.face.play)
        else:
            playing += [KubeScheduler(made.store).run, made.be_kubelet]
        tasks = [asyncio.create_task(work()) for work in playing]
        started.set_result(made)
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await made.stop()

    def serving() -> None:
        asyncio.run(run())
        with warnings.catch_warnings():  # of who was just connecting at the end
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    thread = threading.Thread(target=serving, daemon=True)
    thread.start()
    try:
        yield started.result(_PATIENCE)
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(_PATIENCE)


class Operator:
    """A process; what it logs is kept, and can be waited for.

    ``command`` may be another one of vcjob that takes the same options.
    """

    def __init__(self, config: Path, *more: str, command: str = "operator") -> None:
        arguments = [command, "--kubeconfig", str(config), "--health-address", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vcjob", *arguments, *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "KUBERNETES_SERVICE_HOST": ""},
        )
        self.log: list[str] = []
        self._more = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            with self._more:
                self.log.append(line.rstrip("\n"))
                self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()

    def says(self, text: str) -> str:
        """Wait until it logs a line with ``text``; returns that line."""

        def found() -> str | None:
            return next((line for line in self.log if text in line), None)

        with self._more:
            self._more.wait_for(lambda: found() or self._ended, _PATIENCE)
            line = found()
        assert line is not None, "\n".join(self.log)
        return line

    def ask(self, path: str) -> tuple[int, str]:
        """What a probe gets."""
        found = _PORT.search(self.says("probes and metrics at"))
        assert found
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end; returns its exit code."""
        code = self.process.wait(_PATIENCE)
        self._reader.join(_PATIENCE)
        return code


@contextlib.contextmanager
def operators(config: Path) -> Iterator[Callable[..., Operator]]:
    """Starts operators with further arguments; ends those that still run."""
    started: list[Operator] = []

    def start(*more: str) -> Operator:
        started.append(Operator(config, *more))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            one.end(signal.SIGKILL)
            assert one.process.stderr
            one.process.stderr.close()
