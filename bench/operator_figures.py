"""Speed and memory of the operator on an API server: one line a figure, with its target beside it.

    .venv/bin/python bench/operator.py [--kubeconfig FILE] [--pid PID] [--quick]

Without --kubeconfig the API server is an engine of this machine without a controller of its own.
Pods carry a scheduling gate, so that none starts; this program plays their node, and with --admit
the scheduler that admits their PodGroups (an engine has one, so has a cluster with Volcano).

Without --pid each figure is of a fresh ``vcjob operator``. With it a controller that runs already
is measured in the same way (--pid of vc-controller-manager, say), from what the kernel knows of its
process; what only ours tells of itself, its API calls, is left out then.

All figures are of this run; targets are for two cores that client, operator and server share. Times
on the wall depend on the server: they are shown without a target, and are for comparing controllers
on the same server. Ends with 1 if a target is missed.
"""

import argparse
import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
from figures import Figure
from playing import RUNNING, SUCCEEDED, Player

from vcjob.api.kinds import JOB, POD
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig

VCJOB = str(Path(sys.executable).with_name("vcjob"))
TICKS = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS = 1.0
READY_SECONDS = 60
IDLE_SECONDS = 30
_CALL = re.compile(r'^vcjob_api_calls_total\{code="(\d+)",resource="(\w+)",verb="(\w+)"\} (\S+)$')


class Process:
    """A controller's process, as the kernel knows it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_megabytes(self) -> float:
        """The most memory that was resident."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    async def quiet(self) -> float:
        """CPU seconds so far, once it has nothing more to do."""
        before = self.cpu_seconds()
        while True:
            await asyncio.sleep(QUIET_SECONDS)
            now = self.cpu_seconds()
            if now - before <= 0.02 * QUIET_SECONDS:
                return now
            before = now


class Operator(Process):
    """A ``vcjob operator`` of our own."""

    def __init__(self, kubeconfig: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [VCJOB, "operator", "--kubeconfig", str(kubeconfig), "--scheduler", "volcano",
             "--api-rate", "0", "--health-address", f"127.0.0.1:{self._port}",
             "--log-level", "error", "--lease-namespace", "default"],
        )  # fmt: skip
        super().__init__(self._process.pid)

    async def ready(self) -> None:
        """Return when it says that it is ready and leads."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if await asyncio.to_thread(self._get, "readyz") and "vcjob_leader 1.0" in (
                    await asyncio.to_thread(self._get, "metrics")
                ):
                    return
            await asyncio.sleep(0.05)
        raise SystemExit("the operator does not become ready")

    async def calls(self) -> dict[tuple[str, str], int]:
        """Calls to the API server so far, by verb and resource."""
        counts: dict[tuple[str, str], int] = {}
        for line in (await asyncio.to_thread(self._get, "metrics")).splitlines():
            if found := _CALL.match(line):
                _, resource, verb, count = found.groups()
                key = (verb, resource)
                counts[key] = counts.get(key, 0) + int(float(count))
        return counts

    def stop(self) -> None:
        """End it, and wait for its end."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{path}", timeout=10) as answer:
            return str(answer.read().decode())


class Life(msgspec.Struct):
    """What one Job of many pods took. Seconds; ``created`` and ``lived`` are of CPU.

    ``seconds_alive`` are those on the wall from its creation until it has Completed, with those in
    which this program waited: the controller may write in them as in all others.
    """

    pods: int
    created: float = 0.0
    lived: float = 0.0
    seconds_to_create: float = 0.0
    seconds_alive: float = 0.0
    peak: float = 0.0
    calls: dict[tuple[str, str], int] = {}


@contextlib.asynccontextmanager
async def controller(kubeconfig: Path, pid: int) -> AsyncIterator[Process]:
    """The controller to measure: a fresh one of ours, unless one is named."""
    if pid:
        yield Process(pid)
        return
    operator = Operator(kubeconfig)
    try:
        await operator.ready()
        yield operator
    finally:
        operator.stop()


async def whole_life(player: Player, process: Process, pods: int) -> Life:
    """One Job from its creation to its deletion."""
    name = f"life-{pods}"
    life = Life(pods)
    before = await process.quiet()
    started = time.perf_counter()
    await player.create(name, pods)
    life.seconds_to_create = time.perf_counter() - started
    life.created = await process.quiet() - before
    await player.become(name, pods, RUNNING)
    await player.until(name, "Running")
    await player.become(name, pods, SUCCEEDED)
    await player.until(name, "Completed")
    life.seconds_alive = time.perf_counter() - started
    await player.delete(name)
    life.lived = await process.quiet() - before
    life.peak = process.peak_megabytes()
    if isinstance(process, Operator):
        life.calls = await process.calls()
    return life


async def aborted(player: Player, process: Process, pods: int) -> tuple[float, Life]:
    """Seconds from a Command to the end of the last pod of a Job, and what it took."""
    name = f"abort-{pods}"
    await player.create(name, pods)
    await player.become(name, pods, RUNNING)
    running = await player.until(name, "Running")
    before = await process.quiet()
    started = time.perf_counter()
    await player.abort(name, running["metadata"]["uid"])
    seconds = time.perf_counter() - started
    life = Life(pods, lived=await process.quiet() - before)
    if isinstance(process, Operator):
        life.calls = await process.calls()
    await player.delete(name)
    return seconds, life


async def bare_seconds(player: Player, pods: int) -> float:
    """Seconds for the same number of pods without a controller, as many at once."""
    started = time.perf_counter()
    await player.create_bare("bare", pods)
    return time.perf_counter() - started


async def figures(player: Player, kubeconfig: Path, pid: int, scale: int) -> AsyncIterator[Figure]:
    """Every figure as it is measured; numbers of pods are divided by ``scale``."""
    small, large = 1000 // scale, 5000 // scale
    async with controller(kubeconfig, pid) as process:
        life = await whole_life(player, process, small)
    for figure in _of_life(life):
        yield figure
    async with controller(kubeconfig, pid) as process:
        more = await whole_life(player, process, large)
    yield Figure(f"CPU for {large} pods against {small}", more.lived / life.lived, "times",
                 most=5.5)  # fmt: skip
    yield Figure(f"peak memory, {large} pods", more.peak, "MB")
    bare = await bare_seconds(player, small)
    yield Figure(
        f"{small} pods exist, against bare creates", life.seconds_to_create / bare, "times"
    )
    async with controller(kubeconfig, pid) as process:
        seconds, abort = await aborted(player, process, small)
    yield Figure(f"{small} running pods aborted", seconds, "s")
    yield Figure("  CPU a pod", abort.lived / small * 1000, "ms")
    if abort.calls:
        yield Figure("  deletes a pod", abort.calls.get(("delete", "pods"), 0) / small, "",
                     most=1)  # fmt: skip
        yield Figure("  patches a pod", abort.calls.get(("patch", "pods"), 0) / small, "",
                     most=0)  # fmt: skip
    jobs, each = 500 // scale, 20
    async with controller(kubeconfig, pid) as process:
        await _finished(player, jobs, each)
        before = await process.quiet()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (process.cpu_seconds() - before) / IDLE_SECONDS
    yield Figure(f"idle, {jobs} finished jobs and {jobs * each} pods: of a core", idle * 100, "%",
                 most=1)  # fmt: skip
    if not pid:
        started = time.perf_counter()
        async with controller(kubeconfig, pid) as process:
            yield Figure("  restart to ready", time.perf_counter() - started, "s", most=4)
            await process.quiet()
            yield Figure("  peak memory", process.peak_megabytes(), "MB")


def _of_life(life: Life) -> Iterator[Figure]:
    pods = life.pods
    yield Figure(f"CPU a pod, {pods} pods: creation", life.created / pods * 1000, "ms", most=0.8)
    yield Figure("  whole life", life.lived / pods * 1000, "ms", most=2.0)
    yield Figure("  peak memory", life.peak, "MB", most=100)
    yield Figure("  from the Job's creation until all pods exist", life.seconds_to_create, "s")
    if life.calls:
        yield Figure("  creates a pod", life.calls.get(("create", "pods"), 0) / pods, "", most=1)
        yield Figure("  patches a pod", life.calls.get(("patch", "pods"), 0) / pods, "", most=0)
        writes = life.calls.get(("patch", "jobs"), 0)
        yield Figure("  status writes", writes, "")
        yield Figure("  status writes a second of its life", writes / life.seconds_alive, "",
                     most=2)  # fmt: skip


async def _finished(player: Player, jobs: int, pods: int) -> None:
    """Jobs that have ended, with their pods."""

    async def live(number: int) -> None:
        name = f"done-{number}"
        await player.create(name, pods)
        await player.become(name, pods, SUCCEEDED)
        await player.until(name, "Completed")

    turn = asyncio.Semaphore(8)

    async def in_turn(number: int) -> None:
        async with turn:
            await live(number)

    await asyncio.gather(*(in_turn(number) for number in range(jobs)))


@contextlib.contextmanager
def engine() -> Iterator[Path]:
    """The kubeconfig file of an engine without a controller of its own."""
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        environment = {**os.environ, "XDG_STATE_HOME": directory}

        def vcjob(*arguments: str) -> None:
            subprocess.run([VCJOB, "engine", *arguments], env=environment, check=True,
                           capture_output=True)  # fmt: skip

        vcjob("start", "--detach", "--no-controller", "--kubeconfig", str(kubeconfig))
        try:
            yield kubeconfig
        finally:
            vcjob("stop", "--now")


async def measure(kubeconfig: Path, pid: int, admit: bool, scale: int) -> bool:
    """Print every figure; whether a target was missed."""
    missed = False
    async with KubernetesCluster.of(read_kubeconfig((kubeconfig,))) as cluster:
        player = Player(cluster)
        await player.ensure_queue()
        scheduler = asyncio.create_task(player.admit()) if admit else None
        try:
            async for figure in figures(player, kubeconfig, pid, scale):
                print(figure, flush=True)
                missed |= figure.missed
        finally:
            if scheduler:
                scheduler.cancel()
            for kind in (JOB, POD):
                for obj in (await cluster.list(kind, "default")).items:
                    if obj["metadata"]["name"].startswith(("life-", "abort-", "done-", "bare-")):
                        with contextlib.suppress(Exception):
                            await cluster.delete(kind, "default", obj["metadata"]["name"])
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kubeconfig", type=Path, help="an API server with the kinds of Volcano")
    parser.add_argument("--pid", type=int, default=0, help="measure this process instead")
    parser.add_argument("--admit", action="store_true", help="admit PodGroups: no scheduler does")
    parser.add_argument("--quick", action="store_true", help="a tenth of the pods")
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    if options.kubeconfig:
        missed = asyncio.run(measure(options.kubeconfig, options.pid, options.admit, scale))
    else:
        with engine() as kubeconfig:
            missed = asyncio.run(measure(kubeconfig, options.pid, options.admit, scale))
    sys.exit(1 if missed else 0)
