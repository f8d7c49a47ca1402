"""One pod from its binding to its end: network, volumes, containers in their order, status.

Two things happen to a pod. It *lives*: it is set up, its init containers run one after another,
then the others, until all have ended for good. And it may be *ended*, by deletion or by its
deadline: then the living is stopped where it is, and what runs is ended. Either way the last status
is written and the node takes the pod away.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from vcjob.api.kinds import POD, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Conflict, NotFound
from vcjob.controller.recorder import record_event
from vcjob.core.draft import Told
from vcjob.local.agent.container import ContainerLife, grace_period
from vcjob.local.agent.ending import Ending
from vcjob.local.agent.full_disk import with_room
from vcjob.local.agent.inside import Inside
from vcjob.local.agent.mounting import Mounting
from vcjob.local.agent.pod_files import PodFiles
from vcjob.local.agent.podphase import (
    PodFacts,
    Role,
    Terminated,
    is_initialized,
    is_lacking,
    pod_status,
    qos_class,
)
from vcjob.local.agent.starting import Start, start_of
from vcjob.local.agent.surroundings import Surroundings
from vcjob.local.network.addresses import NODE_ADDRESS, SubnetFull
from vcjob.local.node.client import NodeRefused
from vcjob.local.node.messages import ContainerExited
from vcjob.local.sandbox.paths import UnsafePath
from vcjob.local.volumes.objects import Find, VolumeRefused
from vcjob.local.volumes.shared import SharedFiles

Exits = dict[str, "asyncio.Future[ContainerExited]"]
"""Runs of containers whose end is waited for."""


class PodLife:
    """The life of a pod that is bound to this machine.

    Args:
        pod: the pod as first seen.
        surroundings: what there is around it.
        find: looks objects up in its namespace.
        exits: where the agent looks for who waits for a container's end.
        shared: files that many pods see.
        turn: lets a bounded number of pods be set up at once.
        write_soon: asks the agent to call ``write_status`` soon.
    """

    def __init__(
        self,
        pod: Object,
        surroundings: Surroundings,
        *,
        find: Find,
        exits: Exits,
        shared: SharedFiles,
        turn: asyncio.Semaphore,
        write_soon: "Callable[[PodLife], None]",
    ) -> None:
        self.surroundings = surroundings
        self.uid: str = pod["metadata"]["uid"]
        self._pod = pod
        self._find = find
        self._exits = exits
        self._turn = turn
        self._write_soon = write_soon
        spec = pod["spec"]
        self._policy: str = spec.get("restartPolicy") or "Always"
        inits = [ContainerLife(self, c, init=True) for c in spec.get("initContainers") or ()]
        self._inits = inits
        self._mains = [
            ContainerLife(self, c, init=False, waits=bool(inits))
            for c in spec.get("containers") or ()
        ]
        self._address = ""
        self._joined = False
        self._over = False
        self._reason = ""
        self._message = ""
        self._started_at = surroundings.clock.now()
        self._written: Object = {}
        self._directory = surroundings.settings.pods / self.uid
        self._files = PodFiles(surroundings.settings.pods, self.uid)
        failed = partial(self.tell, "Warning", "FailedMount")
        self._volumes = Mounting(
            surroundings, find, shared, failed, self._lacks, self._in_background
        )
        self._reference_changed = asyncio.Event()
        self._living: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._must_end = asyncio.Event()
        self._ending = Ending(self._inits, self._mains, self.tell, self._in_background)
        self._gone = False

    # What the agent calls

    async def run(self) -> None:
        """Live until nothing of the pod runs any more; then it is gone from the node."""
        self._living = asyncio.create_task(self._live())
        ending = asyncio.create_task(self._must_end.wait())
        deadline = self._pod["spec"].get("activeDeadlineSeconds")
        try:
            await asyncio.wait(
                [self._living, ending],
                timeout=deadline,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._living.done():
                self._living.result()
            else:
                if not self._must_end.is_set():
                    self._reason = "DeadlineExceeded"
                    self._message = "Pod was active on the node longer than the specified deadline"
                await self._end()
        finally:
            ending.cancel()
            self._living.cancel()
        self._over = True
        await self.write_status()
        await self._leave()

    def observe(self, pod: Object) -> None:
        """Take in a change of the pod: its deletion, labels, annotations."""
        before, self._pod = self._pod, pod
        if pod["metadata"].get("deletionTimestamp"):
            self._must_end.set()
            self._ending.shorten(grace_period(pod))
        self._volumes.pod_changed(before, pod)

    def observe_gone(self) -> None:
        """The pod's object is gone: end what runs at once."""
        self._gone = True
        self._must_end.set()
        self._ending.shorten(0.0)

    def evict(self, reason: str, message: str) -> None:
        """End it with its grace period, as Failed for this reason; its object stays."""
        if not self._must_end.is_set():
            self._reason, self._message = reason, message
            self._must_end.set()

    def reference_changes(self, kind: Kind, name: str) -> None:
        """An object that the pod may refer to has changed."""
        self._reference_changed.set()
        self._volumes.object_changed(kind, name, self._pod)

    def inside(self, container: str) -> Inside | None:
        """Where programs can enter a container, None while it does not run."""
        for life in (*self._inits, *self._mains):
            if life.name == container:
                return life.inside
        return None

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self._over

    async def write_status(self) -> None:
        """Write what has changed of the status since the last time."""
        if self._gone:
            return
        containers = [c.facts for c in (*self._inits, *self._mains)]
        gates = self._pod["spec"].get("readinessGates") or ()
        facts = PodFacts(
            restart_policy=self._policy,
            address=self._address,
            host_address=self.surroundings.settings.node_address,
            started_at=self._started_at,
            over=self._over,
            reason=self._reason,
            message=self._message,
            readiness_gates=tuple(gate["conditionType"] for gate in gates),
            qos_class=qos_class(self._pod["spec"]),
        )
        before = self._pod.get("status") or {}
        status = pod_status(facts, containers, before, self.surroundings.clock.now())
        if status == self._written:
            return
        metadata = self._pod["metadata"]
        try:
            patched = await self.surroundings.cluster.patch(
                POD, metadata["namespace"], metadata["name"], {"status": status},
                subresource="status", uid=self.uid,
            )  # fmt: skip
        except (NotFound, Conflict):
            self.observe_gone()
            return
        self._written = status
        if not self._gone:
            self.observe(patched)
        self.surroundings.network.tell_names(patched)

    # What its containers call

    @property
    def pod(self) -> Object:
        """The pod as last seen, with its addresses."""
        return self._pod

    def start_of(self, container: Object, run: str) -> Start:
        """How to start a container; raises what ``starting.start_of`` does."""
        self._reference_changed.clear()
        around = self.surroundings
        return start_of(
            self._pod,
            container,
            run,
            find=self._find,
            volumes=self._volumes.volumes,
            files=self._files,
            machine=around.machine,
            maps=around.volumes.maps,
            capacity=around.volumes.capacity,
            process_limit=around.settings.process_limit,
            terminal=around.settings.attachable and bool(container.get("tty")),
        )

    def termination_message(self, container: Object) -> str:
        """The container's last word."""
        return self._files.termination_message(container)

    def expect_exit(self, run: str) -> "asyncio.Future[ContainerExited]":
        """Resolves when that run of a container has exited."""
        return self._exits.setdefault(run, asyncio.get_running_loop().create_future())

    def forget_exit(self, run: str) -> None:
        """That run did not come to be."""
        self._exits.pop(run, None)

    def changed(self) -> None:
        """The facts of a container changed: write status soon."""
        self._write_soon(self)

    def ended(self) -> None:
        """A container has ended for good: told now, unless the pod's own end follows at once."""
        if not all(isinstance(c.facts.state, Terminated) for c in self._mains):
            self.changed()

    async def tell(self, type_: str, reason: str, message: str) -> None:
        """Tell an Event on the pod."""
        around = self.surroundings
        told = Told(type_, reason, message)
        await record_event(around.cluster, self._pod, told, around.clock.now(), kind=POD)

    def tell_soon(self, type_: str, reason: str, message: str) -> None:
        """Tell an Event on the pod, without waiting until that is done."""
        self._in_background(self.tell(type_, reason, message))

    async def reference_changed(self) -> None:
        """Return when something that the pod may refer to has changed."""
        await self._reference_changed.wait()

    # Living

    async def _live(self) -> None:
        try:
            async with self._turn:
                await self._join()
            await with_room(self._make_files, self._lacks)
        except (NodeRefused, SubnetFull, VolumeRefused, UnsafePath, OSError) as error:
            await self._fail("CreatePodError", str(error))
            return
        beside: list[asyncio.Task[Terminated]] = []
        try:
            if await self._run_inits(beside):
                await self._run_mains()
            for sidecar in reversed([c for c in self._inits if c.role is Role.SIDECAR]):
                await sidecar.end(grace_period(self._pod))
        finally:
            for task in beside:
                task.cancel()

    async def _join(self) -> None:
        self._joined = True
        self._address = await self.surroundings.network.join(self._pod)
        await self.write_status()

    async def _make_files(self) -> None:
        self._files.make(self._pod, self._address, str(NODE_ADDRESS))
        await self._volumes.make(self._pod, self._reference_changed)
        if any(is_lacking(c.facts.state) for c in (*self._inits, *self._mains)):
            # Before any starts: what lacks something is begun anew by an engine that finds it.
            self._show_lack("")
            await self.write_status()

    async def _lacks(self, message: str) -> None:
        self._show_lack(message)
        await self.tell("Warning", "FailedMount", message)

    def _show_lack(self, message: str) -> None:
        for container in (*self._inits, *self._mains):
            container.waits_for(message)

    async def _run_inits(self, beside: "list[asyncio.Task[Terminated]]") -> bool:
        """Run init containers in turn; False if one failed for good. Sidecars stay, ``beside``."""
        for container in self._inits:
            if container.role is Role.SIDECAR:
                task = asyncio.create_task(container.run(self._policy))
                beside.append(task)
                await container.started.wait()
                continue
            ended = await container.run(self._policy)
            if ended.exit_code:
                return False
        if self._inits:
            for container in self._mains:
                container.initialized()
        return is_initialized(c.facts for c in self._inits)

    async def _run_mains(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for container in self._mains:
                tasks.create_task(container.run(self._policy))

    # Ending

    async def _end(self) -> None:
        """Stop living, and end what runs."""
        assert self._living is not None
        self._living.cancel()
        await asyncio.wait([self._living])
        if not self._living.cancelled():
            self._living.result()
        await self._ending.run(0.0 if self._gone else grace_period(self._pod))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _fail(self, reason: str, message: str) -> None:
        self._reason, self._message = reason, message
        await self.tell("Warning", reason, message)

    async def _leave(self) -> None:
        """Give everything back: processes, network, files."""
        directories = [] if self.surroundings.settings.keep else [str(self._directory)]
        try:
            await self.surroundings.node.remove_pod(self.uid, directories)
            if directories:
                self._files.remove()
        except (NodeRefused, OSError) as error:
            await self.tell("Warning", "FailedKillPod", str(error))
        if self._joined:
            await self.surroundings.network.leave(self._pod)
