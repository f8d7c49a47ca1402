"""The agent: takes over the pods that are bound to this machine and sees them through.

One watch over pods, one over each kind of object that pods refer to; a task for each pod that
lives. Nothing is polled. Status is written by one task, so that what changes at once is one write.
"""

import asyncio
import functools
import logging

import msgspec

from vcjob.api.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, POD, SECRET, Kind
from vcjob.api.types import Key, Object, key_of
from vcjob.controller.cluster import ClusterError, Conflict, NotFound
from vcjob.local.agent.inside import Inside
from vcjob.local.agent.pod import Exits, PodLife
from vcjob.local.agent.surroundings import Surroundings
from vcjob.local.following import follow
from vcjob.local.node.messages import ContainerExited
from vcjob.local.volumes.objects import Find
from vcjob.local.volumes.shared import SharedFiles

_REFERRED = (CONFIG_MAP, SECRET, PERSISTENT_VOLUME_CLAIM)
_FINAL_PHASES = ("Succeeded", "Failed")

_log = logging.getLogger(__name__)


class Agent:
    """Sees the pods of one node through; takes over ``surroundings.node.on_exit``."""

    def __init__(self, surroundings: Surroundings) -> None:
        # Directories of this machine are read once a run, not for each container.
        machine = msgspec.structs.replace(
            surroundings.machine, list=functools.cache(surroundings.machine.list)
        )
        surroundings = msgspec.structs.replace(surroundings, machine=machine)
        self._around = surroundings
        self._pods: dict[str, PodLife] = {}
        self._ended: set[str] = set()
        self._objects: dict[tuple[Kind, Key], Object] = {}
        self._exits: Exits = {}
        self._shared = SharedFiles(str(surroundings.settings.pods / "shared"))
        self._turn = asyncio.Semaphore(surroundings.settings.starts_at_once)
        self._unwritten: dict[PodLife, None] = {}
        self._write = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: asyncio.TaskGroup | None = None
        self._closing = False
        surroundings.node.on_exit = self._on_exit

    async def run(self) -> None:
        """Work until cancelled; raises NodeGone when the node process ends.

        Pods' processes are not ended by cancelling: they end with the node.
        """
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            listed = [asyncio.Event() for _ in _REFERRED]
            for kind, event in zip(_REFERRED, listed, strict=True):
                tasks.create_task(self._follow_referred(kind, event))
            for event in listed:
                await event.wait()
            tasks.create_task(self._write_statuses())
            tasks.create_task(follow(self._around.cluster, POD, self._take_pod))

    async def drain(self) -> None:
        """Return when no pod lives any more."""
        await self._idle.wait()

    async def shut_down(self, reason: str, message: str) -> None:
        """End every pod as Failed for this reason; returns when their grace periods are over.

        Pods that come later are left as they are.
        """
        self._closing = True
        for life in self._pods.values():
            life.evict(reason, message)
        await self.drain()

    @property
    def nothing_runs(self) -> bool:
        """Whether no pod has a process, though the ends of some may not be written yet."""
        return all(life.is_over for life in self._pods.values())

    @property
    def surroundings(self) -> Surroundings:
        """What the agent works with."""
        return self._around

    def inside(self, uid: str, container: str) -> Inside | None:
        """Where programs can enter a container of a pod, None while it does not run."""
        life = self._pods.get(uid)
        return life.inside(container) if life else None

    async def _follow_referred(self, kind: Kind, listed: asyncio.Event) -> None:
        def take(obj: Object, gone: bool) -> None:
            key = key_of(obj)
            if gone:
                self._objects.pop((kind, key), None)
            else:
                self._objects[kind, key] = obj
            for life in self._pods.values():
                if life.pod["metadata"]["namespace"] == key[0]:
                    life.reference_changes(kind, key[1])

        await follow(self._around.cluster, kind, take, listed.set)

    def _take_pod(self, pod: Object, gone: bool) -> None:
        uid = pod["metadata"]["uid"]
        life = self._pods.get(uid)
        if gone:
            self._ended.discard(uid)
            if life:
                life.observe_gone()
        elif life:
            life.observe(pod)
        elif pod["spec"].get("nodeName") == self._around.settings.node_name:
            self._take_over(pod, uid)

    def _take_over(self, pod: Object, uid: str) -> None:
        assert self._tasks is not None
        final = (pod.get("status") or {}).get("phase") in _FINAL_PHASES
        if pod["metadata"].get("deletionTimestamp"):
            self._tasks.create_task(self._delete(pod))
        elif uid not in self._ended and not final and not self._closing:
            self._idle.clear()
            life = PodLife(
                pod,
                self._around,
                find=self._find_in(pod["metadata"]["namespace"]),
                exits=self._exits,
                shared=self._shared,
                turn=self._turn,
                write_soon=self._write_soon,
            )
            self._pods[uid] = life
            self._tasks.create_task(self._see_through(life))

    async def _see_through(self, life: PodLife) -> None:
        try:
            await life.run()
        finally:
            del self._pods[life.uid]
            self._unwritten.pop(life, None)
            if not self._pods:
                self._idle.set()
        self._ended.add(life.uid)
        if life.pod["metadata"].get("deletionTimestamp"):
            await self._delete(life.pod)

    async def _delete(self, pod: Object) -> None:
        """Take away the object of a pod that is to go and of which nothing runs."""
        metadata = pod["metadata"]
        try:
            await self._around.cluster.delete(
                POD, metadata["namespace"], metadata["name"], uid=metadata["uid"],
                grace_period_seconds=0,
            )  # fmt: skip
        except (NotFound, Conflict):
            pass
        except ClusterError as error:
            _log.warning("pod %s is not deleted: %s", metadata["name"], error)
        self._ended.discard(metadata["uid"])

    def _find_in(self, namespace: str) -> Find:
        def find(kind: Kind, name: str) -> Object | None:
            return self._objects.get((kind, (namespace, name)))

        return find

    def _write_soon(self, life: PodLife) -> None:
        self._unwritten[life] = None
        self._write.set()

    async def _write_statuses(self) -> None:
        while True:
            await self._write.wait()
            self._write.clear()
            await asyncio.sleep(0)  # what changes in the same moment is one write
            unwritten, self._unwritten = self._unwritten, {}
            for life in unwritten:
                if life.uid in self._pods:
                    await life.write_status()

    def _on_exit(self, exited: ContainerExited) -> None:
        waiting = self._exits.pop(exited.container, None)
        if waiting and not waiting.done():
            waiting.set_result(exited)
