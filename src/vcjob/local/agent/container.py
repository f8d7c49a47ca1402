"""One container of a pod through its life: started, watched, ended, started again.

Whatever changes is put into ``facts`` and told to the pod, which writes status. The process belongs
to this object and not to a task: a cancelled ``run`` leaves it running until ``end`` ends it.
"""

import asyncio
import contextlib
import signal
from functools import partial
from typing import Protocol

import msgspec

from vcjob.api.types import Object
from vcjob.local.agent.full_disk import with_room
from vcjob.local.agent.hooks import hook_of, run_hook
from vcjob.local.agent.inside import Inside
from vcjob.local.agent.podphase import (
    CONFIG_ERROR,
    CREATE_ERROR,
    ContainerFacts,
    Running,
    Terminated,
    Waiting,
    is_lacking,
)
from vcjob.local.agent.probes import Failed, Prober, Watch
from vcjob.local.agent.process import Process, open_streams, request_start
from vcjob.local.agent.restarts import BackOff, restarts, role_of
from vcjob.local.agent.starting import CannotStart, Start
from vcjob.local.agent.surroundings import Node, Surroundings
from vcjob.local.node.client import NodeRefused
from vcjob.local.node.messages import ContainerExited
from vcjob.local.sandbox.paths import UnsafePath
from vcjob.local.volumes.objects import MissingReference, VolumeRefused

_START_ERROR = 128
_AFTER_HOOK_SECONDS = 2.0
_KILL_SECONDS = 30.0
"""A killed process that is still there after this is stuck in the kernel."""


class OfPod(Protocol):
    """What a container needs of its pod."""

    surroundings: Surroundings

    @property
    def pod(self) -> Object:
        """The pod as last seen, with its address."""

    def start_of(self, container: Object, run: str) -> Start:
        """How to start a container; raises what ``starting.start_of`` does."""

    def termination_message(self, container: Object) -> str:
        """The container's last word."""

    def expect_exit(self, run: str) -> "asyncio.Future[ContainerExited]":
        """Resolves when that run of a container has exited."""

    def forget_exit(self, run: str) -> None:
        """That run did not come to be."""

    def changed(self) -> None:
        """The facts of a container changed: write status soon."""

    async def write_status(self) -> None:
        """Return when the status is written as it is now."""

    def ended(self) -> None:
        """A container has ended for good."""

    async def tell(self, type_: str, reason: str, message: str) -> None:
        """Tell an Event on the pod."""

    def tell_soon(self, type_: str, reason: str, message: str) -> None:
        """Tell an Event on the pod, without waiting until that is done."""

    async def reference_changed(self) -> None:
        """Return when something that the pod refers to has changed."""


class ContainerLife:
    """A container of ``of_pod``; ``spec`` is its description. ``waits``: for init containers."""

    def __init__(self, of_pod: OfPod, spec: Object, *, init: bool, waits: bool = False) -> None:
        self.spec = spec
        self.name: str = spec["name"]
        self.role = role_of(spec, init=init)
        waiting = Waiting("PodInitializing" if waits else "ContainerCreating")
        self.facts = ContainerFacts(self.name, spec.get("image", ""), self.role, state=waiting)
        self.started = asyncio.Event()
        """It runs, and its startup probe (if any) has passed."""
        self._of_pod = of_pod
        self._around = of_pod.surroundings
        self._process: Process | None = None
        settings = self._around.settings
        self._back_off = BackOff(settings.back_off_seconds, settings.longest_back_off_seconds)

    @property
    def is_running(self) -> bool:
        """Whether there is a process, or one is on its way."""
        return self._process is not None

    @property
    def inside(self) -> Inside | None:
        """Where programs can enter it, None while it does not run."""
        is_up = self._process is not None and isinstance(self.facts.state, Running)
        return self._process.inside if self._process and is_up else None

    async def run(self, pod_policy: str) -> Terminated:
        """Run it, again and again as the restart policies say; returns how it ended for good."""
        while True:
            ended = await self._run_once()
            if not restarts(pod_policy, self.spec, self.role, ended.exit_code):
                self._of_pod.ended()
                return ended
            self._back_off, delay = self._back_off.after(ended.finished_at - ended.started_at)
            if delay:
                message = f"back-off {delay:g}s restarting container {self.name}"
                self._set(state=Waiting("CrashLoopBackOff", message), last=ended)
                await self._of_pod.tell("Warning", "BackOff", message)
                await asyncio.sleep(delay)
            self._set(state=Waiting(), last=ended, restarts=self.facts.restarts + 1)

    async def end(self, grace: float) -> None:
        """End the process, if there is one: stop signal, and SIGKILL after ``grace`` seconds.

        Raises NodeGone.
        """
        process = self._process
        if process is None:
            return
        if process.starting:
            try:
                await asyncio.shield(process.starting)
            except NodeRefused as error:
                self._not_started(process, error)
                return
        deadline = asyncio.get_running_loop().time() + grace
        if grace > 0:
            await self._pre_stop(process, grace)
            if hook_of(self.spec, "preStop"):
                # As kubelet: a hook that took all the time leaves the program a little.
                deadline = max(deadline, asyncio.get_running_loop().time() + _AFTER_HOOK_SECONDS)
            await self._node.signal(process.run, self._stop_signal)
            await asyncio.wait([process.exited], timeout=_left(deadline))
        if not process.exited.done():
            await self._node.signal(process.run, signal.SIGKILL)
            await asyncio.wait([process.exited], timeout=_KILL_SECONDS)
        await self._collect(process)

    async def kill(self) -> None:
        """End the process at once, if there is one; raises NodeGone. ``end`` sees it through."""
        process = self._process
        if process and process.starting:
            with contextlib.suppress(NodeRefused):  # told by whoever started it
                await asyncio.shield(process.starting)
                await self._node.signal(process.run, signal.SIGKILL)

    def waits_for(self, message: str) -> None:
        """What its pod lacks before any container can start; "" once there is all of it."""
        state = self.facts.state
        is_made = isinstance(state, Waiting) and state.reason == Waiting().reason
        if is_made and state != (waits := Waiting(message=message)):
            self._set(state=waits)

    def initialized(self) -> None:
        """The init containers are done: it is this one's turn."""
        self._set(state=Waiting())

    def cannot_start(self, reason: str, message: str) -> Terminated:
        """Mark it as ended because it could not be started."""
        now = self._around.clock.now()
        ended = Terminated(_START_ERROR, reason, now, now, message)
        self._set(state=ended)
        return ended

    def _not_started(self, process: Process, error: NodeRefused) -> Terminated:
        self._process = None
        self._of_pod.forget_exit(process.run)
        process.log.end()
        process.close_stdin()
        return self.cannot_start("StartError", str(error))

    async def _run_once(self) -> Terminated:
        run = f"{self._of_pod.pod['metadata']['uid']}/{self.name}/{self.facts.restarts}"
        try:
            start = await with_room(partial(self._start, run), self._tell_no_room)
            log, stdin = open_streams(
                self._around, self._of_pod.pod, self.spec, self.facts.restarts
            )
        except (CannotStart, VolumeRefused, UnsafePath, OSError) as error:
            await self._of_pod.tell("Warning", "Failed", str(error))
            return self.cannot_start("ContainerCannotRun", str(error))
        inside = Inside(self._node, run, start.environment, start.directory, stdin)
        now = self._around.clock.now()
        process = Process(run, self._of_pod.expect_exit(run), log, inside, now)
        self._process = process
        process.starting = asyncio.create_task(request_start(self._node, start, log, stdin))
        # Whoever waits for it may be cancelled, and the node may go: then nobody is to hear of it.
        process.starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await asyncio.shield(process.starting)
        except NodeRefused as error:
            await self._of_pod.tell("Warning", "Failed", str(error))
            return self._not_started(process, error)
        if start.skipped:
            await self._of_pod.tell(
                "Warning", "InvalidEnvironmentVariableNames",
                f"container {self.name}: no variables could be made of the envFrom keys "
                f"{', '.join(start.skipped)}",
            )  # fmt: skip
        if not process.exited.done():
            self._set(state=Running(process.started_at), id=run)
            await self._post_start(process)
            await self._watch(process)
        ended = await self._collect(process)
        if ended.reason in ("StartError", "ContainerCannotRun"):
            await self._of_pod.tell("Warning", "Failed", f"{self.name}: {ended.message}")
        return ended

    async def _start(self, run: str) -> Start:
        """How to start it, once everything is there that it refers to."""
        told = ""
        while True:
            try:
                start = self._of_pod.start_of(self.spec, run)
                break
            except MissingReference as error:
                self._set(state=Waiting(CONFIG_ERROR, str(error)))
                if str(error) != told:
                    told = str(error)
                    await self._of_pod.tell("Warning", "Failed", f"Error: {error}")
                await self._of_pod.reference_changed()
        if is_lacking(self.facts.state):
            # Before it starts: what lacks something is begun anew by an engine that finds it.
            self._set(state=Waiting())
            await self._of_pod.write_status()
        return start

    async def _tell_no_room(self, error: str) -> None:
        self._set(state=Waiting(CREATE_ERROR, error))
        await self._of_pod.tell("Warning", "Failed", f"Error: {error}")

    async def _watch(self, process: Process) -> None:
        """Until the process ends: readiness from the probes, and what a failed one asks for."""
        prober = self._prober(process)
        if not prober.has_any:
            self.started.set()
            self._set(ready=True, started=True)
            await asyncio.shield(process.exited)
            return
        probing = asyncio.create_task(prober.run(self._seen))
        try:
            waited: tuple[asyncio.Future[ContainerExited], asyncio.Future[Failed]]
            waited = (process.exited, probing)
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if probing.done() and not process.exited.done():
                await self._end_failed(probing.result())
        finally:
            probing.cancel()

    async def _post_start(self, process: Process) -> None:
        """Run the postStart hook; a container whose hook fails is ended."""
        wrong = await self._run_hook("postStart", process, None)
        if wrong and not process.exited.done():
            await self._of_pod.tell("Warning", "FailedPostStartHook", f"{self.name}: {wrong}")
            await self.end(grace_period(self._of_pod.pod))

    async def _pre_stop(self, process: Process, grace: float) -> None:
        """Run the preStop hook within the grace period; the container is ended in any case."""
        if wrong := await self._run_hook("preStop", process, grace):
            await self._of_pod.tell("Warning", "FailedPreStopHook", f"{self.name}: {wrong}")

    async def _run_hook(self, name: str, process: Process, seconds: float | None) -> str:
        return await run_hook(self.spec, name, self._prober(process), process.exited, seconds)

    def _prober(self, process: Process) -> Prober:
        return Prober(self._of_pod.pod, self.spec, self._around, process.inside, self._unhealthy)

    def _unhealthy(self, message: str) -> None:
        self._of_pod.tell_soon("Warning", "Unhealthy", f"container {self.name}: {message}")

    def _seen(self, watch: Watch) -> None:
        if watch.started:
            self.started.set()
        self._set(ready=watch.ready, started=watch.started)

    async def _end_failed(self, failed: Failed) -> None:
        self._set(ready=False)
        message = f"container {self.name} failed its {failed.what} ({failed.message}); ended"
        await self._of_pod.tell("Warning", "Unhealthy", message)
        grace = failed.grace
        await self.end(grace_period(self._of_pod.pod) if grace is None else grace)

    async def _collect(self, process: Process) -> Terminated:
        """The end of a run: the rest of its output, then its facts. Safe to be called twice."""
        if process.exited.done():
            exited = process.exited.result()
        else:
            exited = ContainerExited(process.run, 128 + signal.SIGKILL)
        process.close_stdin()
        await process.log.finished()
        if self._process is not process and isinstance(self.facts.state, Terminated):
            return self.facts.state
        self._process = None
        self.started.clear()
        written = self._of_pod.termination_message(self.spec) if exited.started else ""
        ended = process.ended(exited, self.spec, self._around.clock.now(), written)
        # Not told yet: whether it starts again, or was the pod's last, is told with it.
        self.facts = msgspec.structs.replace(
            self.facts, state=ended, ready=False, started=False, id=process.run
        )
        return ended

    def _set(self, **changes: object) -> None:
        self.facts = msgspec.structs.replace(self.facts, **changes)
        self._of_pod.changed()

    @property
    def _node(self) -> Node:
        return self._around.node

    @property
    def _stop_signal(self) -> signal.Signals:
        name = (self.spec.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
        return signal.Signals.__members__.get(name, signal.SIGTERM)


def grace_period(pod: Object) -> float:
    """Seconds between the stop signal and SIGKILL: what the deletion says, else the pod."""
    given = pod["metadata"].get("deletionGracePeriodSeconds")
    if given is None:
        given = pod["spec"].get("terminationGracePeriodSeconds")
    return 30.0 if given is None else float(given)


def _left(deadline: float) -> float:
    return max(deadline - asyncio.get_running_loop().time(), 0.0)
