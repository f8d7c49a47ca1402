"""The engine of this machine, assembled: store, controller, scheduler, node, agent.

Used in this order: ``prepare`` (before an event loop runs, because it forks the node process), then
``async with engine``, then ``submit``. Leaving the context ends every pod at once.
"""

import asyncio
import contextlib
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec

from vcjob.api.kinds import JOB, find_kind
from vcjob.api.types import Object
from vcjob.controller.clock import SystemClock
from vcjob.controller.cluster import Cluster
from vcjob.controller.controller import Controller
from vcjob.local.agent.agent import Agent
from vcjob.local.agent.log_files import LogFiles, files_in, last_line
from vcjob.local.agent.logs import Logs, OnLine
from vcjob.local.agent.surroundings import AgentSettings, Surroundings
from vcjob.local.apiserver.admission import problems_here
from vcjob.local.capacity import machine_capacity, process_limit
from vcjob.local.endpoint_slices import EndpointSlices
from vcjob.local.first_objects import make_first_objects
from vcjob.local.machine_view import MachineView, bind_mounts
from vcjob.local.network.addresses import NODE_ADDRESS
from vcjob.local.network.set_up import set_up_network
from vcjob.local.networking import Networking
from vcjob.local.node.client import NodeClient, NodeGone, NodeRefused, start_node
from vcjob.local.node.etc_copy import etc_copy
from vcjob.local.node.identity import UNPRIVILEGED_BASE, IdMaps
from vcjob.local.node.namespaces import World
from vcjob.local.node.options import NodeOptions
from vcjob.local.options import EngineOptions
from vcjob.local.patience import PatientCluster
from vcjob.local.remains import LastStates, remove_files
from vcjob.local.run_directory import leftovers, open_run, state_root
from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.machine import Machine
from vcjob.local.sandbox.python import find_python
from vcjob.local.scheduler import Scheduler, make_queues
from vcjob.local.store import Store
from vcjob.local.volumes.pod_volumes import VolumeWorld
from vcjob.plugins.registry import installed_plugins

NODE_NAME = "this-machine"
_LOOK_SECONDS = 0.5
_NODE_SECONDS = 1.0


class Kept(msgspec.Struct, frozen=True):
    """What outlives an engine that is a service: its objects, and the directory of its logs."""

    store: Store
    logs: Path


class LocalEngine:
    """Pods on this machine. See the module's text for the order of calls.

    With ``of_service`` nothing of the run's own directory stays; what is to outlive the engine is
    given as ``kept`` before the context is entered. Without ``with_controller`` nobody here makes
    pods of Jobs, and without ``with_scheduler`` nobody admits gangs and binds pods.

    ``on_line`` gets the pods' output and ``on_problem`` sentences about the engine's own troubles;
    set both before the context is entered. ``lost`` resolves with a sentence when the engine can
    not go on.
    """

    cluster: Cluster
    lost: asyncio.Future[str]
    kept: Kept | None = None

    def __init__(
        self,
        options: EngineOptions,
        *,
        of_service: bool = False,
        with_controller: bool = True,
        with_scheduler: bool = True,
    ) -> None:
        self._options = options
        self._of_service = of_service
        self._with_controller = with_controller
        self._with_scheduler = with_scheduler
        self._root = state_root()
        self._world: World | None = None
        self._last_states = LastStates()
        self.run = open_run(self._root, of_service=of_service)
        self.on_line: OnLine = lambda namespace, pod, container, line: None
        self.on_problem: Callable[[str], None] = lambda text: None

    def prepare(self) -> None:
        """Fork the node process, which sets itself up meanwhile; raises MachineCannot.

        Must run in the main thread before an event loop.
        """
        options = NodeOptions(str(self.run.node))
        if self._options.map_users:
            options = NodeOptions(options.directory, move_root=True, passages=self._give_away())
        self._world = start_node(options, set_up_network)
        # A pipe for each container that runs; containers keep the limit vcjob was started with.
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def _give_away(self) -> tuple[str, ...]:
        """Let the moved root own the pods' directories; returns all places that it is to get to."""
        own = (self.run.pods, self.run.node, self._claims)
        self._claims.mkdir(mode=0o700, exist_ok=True)
        for directory in own:
            os.chown(directory, UNPRIVILEGED_BASE, UNPRIVILEGED_BASE)
        shown = (*(source for source, _, _ in self._options.binds), *self._options.host_paths)
        programs = (*self.machine.python.directories, sys.prefix, sys.base_prefix)
        return tuple(map(str, (*own, *shown, *programs)))

    def abandon(self) -> None:
        """End a prepared engine that is not to run."""
        asyncio.run(self._end_world())

    @property
    def _claims(self) -> Path:
        """Claims of a moved root have other owners, so that they are others."""
        return self._root / ("claims-map-users" if self._options.map_users else "claims")

    @property
    def maps(self) -> IdMaps:
        """The users and groups that pods can run as."""
        return self._prepared().maps

    @cached_property
    def machine(self) -> Machine:
        """What pods see of this machine; raises PythonNotFound."""
        return Machine.read(find_python(self._options.python), etc_copy(str(self.run.node)))

    @cached_property
    def binds(self) -> tuple[BindMount, ...]:
        """What the user shows to every pod."""
        return bind_mounts(self._options)

    @property
    def view(self) -> MachineView:
        """What pods will find; raises PythonNotFound."""
        return MachineView(self.machine, self.maps, self.binds, self.volumes.allowed)

    @cached_property
    def volumes(self) -> VolumeWorld:
        """What pods' volumes can be made of."""
        return VolumeWorld(
            claims=str(self._claims),
            maps=self.maps,
            host_paths=tuple(map(str, self._options.host_paths)),
            binds=self.binds,
            capacity=machine_capacity(),
        )

    async def __aenter__(self) -> Self:
        """Start everything; raises MachineCannot if the pods' world could not be made."""
        try:
            self._node = await NodeClient.connect(self._prepared())
        except BaseException:
            self.run.close()
            raise
        self.lost = asyncio.get_running_loop().create_future()
        self._node.closed.add_done_callback(self._on_node_closed)
        self.cluster = self.kept.store if self.kept else Store(time.time, disk=self._last_states)
        patient = self._patient = PatientCluster(self.cluster, self.on_problem)
        self._network = Networking(self.cluster, self._node, self._node.name_server)
        # Times are kept for those who read logs later, through a service's API; it tells pods of
        # one name apart by them too.
        files = LogFiles(
            str(self.logs),
            self.on_problem,
            clock=time.time_ns if self._of_service else None,
            apart=not self._of_service,
        )
        self._logs = Logs(files, self.on_line)
        capacity = dict(self.volumes.capacity)
        self._agent = Agent(self._surroundings(patient))
        await make_first_objects(self.cluster, NODE_NAME, capacity)
        deciding = []
        if self._with_scheduler:
            scheduler = Scheduler(patient, capacity, node=NODE_NAME, clock=time.time)
            deciding.append(scheduler.run())
        else:
            await make_queues(patient)
        if self._with_controller:
            plugins = installed_plugins(third_party=True)
            # Nobody else checks what goes into the store, and an impossible object would stop us.
            controller = Controller(self.cluster, plugins, of_others=True, check=problems_here)
            deciding.append(controller.run())
        self._deciding = self._begin(*deciding)
        doing = [self._network.run(), self._agent.run(), self._clean_up(), self._watch_names()]
        if self._of_service:
            doing.append(EndpointSlices(patient, self.on_problem).run())
        self._doing = self._begin(*doing)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if not self.kept:
            self._last_states.leave(self.run.objects, self.on_problem)
        for work in (self._deciding, self._doing):
            work.cancel()
        await asyncio.gather(self._deciding, self._doing, return_exceptions=True)  # told by lost
        self._logs.close()
        self._network.close()
        by_node = os.geteuid() != 0
        if by_node and not self._node.closed.done() and not self._options.keep:
            with contextlib.suppress(NodeRefused, NodeGone):  # the next run removes what is left
                await remove_files([self.run.pods], self._node)
        await self._node.close()
        with contextlib.suppress(OSError):  # the node mounted on one while it lived
            if not by_node and not self._options.keep:
                await remove_files([self.run.pods], self._node)
            self.run.remove_node()
        if self._of_service:
            shutil.rmtree(self.run.path, ignore_errors=True)  # what it leaves, the next run removes
        self.run.close()

    async def submit(self, objects: Sequence[Object]) -> list[Object]:
        """Create objects, Jobs after all others; returns the Jobs as created."""
        kinds = [(find_kind(obj["apiVersion"], obj["kind"]), obj) for obj in objects]
        jobs = []
        for kind, obj in sorted(kinds, key=lambda pair: pair[0] == JOB):
            assert kind is not None, "unknown kinds are refused when manifests are loaded"
            created = await self.cluster.create(kind, obj)
            if kind == JOB:
                jobs.append(created)
        return jobs

    async def shut_down(self, reason: str, message: str) -> None:
        """Decide nothing any more, and end every pod as Failed for this reason, with its grace.

        Where that cannot be stored, the next engine finds pods that were lost: nobody waits for
        room on a disk to end.
        """
        self._deciding.cancel()
        await asyncio.wait([self._deciding])
        ending = asyncio.create_task(self._agent.shut_down(reason, message))
        try:
            while not ending.done():
                await asyncio.wait([ending], timeout=_LOOK_SECONDS)
                if self._patient.waiting and self._agent.nothing_runs:
                    self.on_problem("how pods ended is not stored: the next start finds them lost")
                    return
        finally:
            ending.cancel()

    async def drain(self) -> None:
        """Return when no pod lives any more, so that all output has been handed over."""
        await self._agent.drain()

    @property
    def agent(self) -> Agent:
        """What sees the pods through, once the context is entered."""
        return self._agent

    @property
    def logs(self) -> Path:
        """Where the output of containers goes."""
        return self.kept.logs if self.kept else self.run.logs

    def last_line(self, pod: Object, container: str, run: int) -> bytes:
        """The last line that a pod's container printed in one of its runs (from 0 on), or empty."""
        metadata = pod["metadata"]
        namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
        return last_line(self._logs.files.path(namespace, name, container, run, uid))

    def _prepared(self) -> World:
        if self._world is None:
            raise RuntimeError("prepare() comes first")
        return self._world

    def _begin(self, *parts: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        work = asyncio.create_task(_all(*parts))
        work.add_done_callback(self._on_work_ended)
        return work

    def _surroundings(self, cluster: Cluster) -> Surroundings:
        return Surroundings(
            cluster=cluster,
            node=self._node,
            network=self._network,
            logs=self._logs,
            machine=self.machine,
            volumes=self.volumes,
            clock=SystemClock(),
            settings=AgentSettings(
                node_name=NODE_NAME,
                node_address=str(NODE_ADDRESS),
                pods=self.run.pods,
                keep=self._options.keep,
                process_limit=process_limit(),
                attachable=self._of_service,
            ),
        )

    async def _clean_up(self) -> None:
        """Remove what killed runs left; logs of earlier engines count within the bounds."""
        if self.kept:
            self._logs.files.take_in(await asyncio.to_thread(files_in, str(self.logs)))
        if found := leftovers(self._root):
            try:
                await remove_files(found, self._node)
            except (NodeRefused, OSError) as error:
                self.on_problem(f"files of earlier runs could not be removed: {error}")

    async def _watch_names(self) -> None:
        """Pods that cannot find each other are of no use: without the name server all ends."""
        await self._network.name_server_ended()
        await asyncio.wait([self._node.closed], timeout=_NODE_SECONDS)  # it may have taken it along
        if not self.lost.done():
            self.lost.set_result("the process that looks up names for pods ended")

    def _on_node_closed(self, _: asyncio.Future[None]) -> None:
        if not self.lost.done():
            self.lost.set_result("the process that held the pods ended, and every pod with it")

    def _on_work_ended(self, work: asyncio.Task[None]) -> None:
        if work.cancelled() or self.lost.done():
            return
        error = work.exception()
        self.lost.set_result(f"the engine stopped: {error!r}" if error else "the engine stopped")

    async def _end_world(self) -> None:
        with contextlib.suppress(Exception):
            node = await NodeClient.connect(self._prepared())
            await node.close()
        self.run.close()


async def _all(*parts: Coroutine[Any, Any, None]) -> None:
    if not parts:
        await asyncio.Event().wait()  # whoever has nothing to do has not ended
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part)
