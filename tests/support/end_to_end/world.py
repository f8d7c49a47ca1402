"""One namespace of a tested cluster: what is in it, and all who act there but the controller.

It can stand where tests/support/simulation.py does: the same is done by the same names, here
through the API. What happens is known from watches.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

import msgspec

from end_to_end.facts import Facts, make_account
from end_to_end.mirror import PATIENCE_SECONDS, WATCHED, Mirror
from end_to_end.playing import ended, for_node, make_node, restarted, running
from vcjob.api.kinds import COMMAND, JOB, NAMESPACE, NODE, POD, POD_GROUP, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Conflict, Forbidden, Invalid, NotFound, ObjectList
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.connection import object_path
from vcjob.kubernetes.errors import Asked

_PAUSE_SECONDS = 0.5


class World(Mirror):
    """A namespace, and a node of its own that is played."""

    def __init__(self, cluster: KubernetesCluster, facts: Facts, namespace: str) -> None:
        super().__init__(cluster, namespace)
        self.facts = facts
        self.node = namespace
        self._ends_pods = True
        self._apart: list[tuple[Kind, str]] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def on(cls, cluster: KubernetesCluster, facts: Facts) -> AsyncIterator[Self]:
        """A new namespace with its node, both taken away at the end."""
        made = await cluster.create(NAMESPACE, {"metadata": {"generateName": "vcjob-test-"}})
        world = cls(cluster, facts, made["metadata"]["name"])
        try:
            await make_node(cluster, world.node)
            if facts.accounts:
                await make_account(cluster, world.namespace)
            async with asyncio.TaskGroup() as group:
                tasks = await world.follow(group)
                tasks.append(group.create_task(world._end_pods()))
                yield world
                for task in tasks:
                    task.cancel()
        finally:
            await world._take_away()

    async def _take_away(self) -> None:
        for kind in (JOB, POD):
            for obj in (await self.cluster.list(kind, self.namespace)).items:
                with contextlib.suppress(NotFound):
                    name = obj["metadata"]["name"]
                    await self.cluster.delete(kind, self.namespace, name, grace_period_seconds=0)
        for kind, name in ((NAMESPACE, self.namespace), (NODE, self.node)):
            with contextlib.suppress(NotFound):
                await self.cluster.delete(kind, "", name)
        for kind, name in reversed(self._apart):
            await self._delete_when_let(kind, name)

    async def _delete_when_let(self, kind: Kind, name: str) -> None:
        """Delete what a webhook keeps as long as pods count as being in it; raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    return await self.cluster.delete(kind, "", name)
                except NotFound:
                    return None
                except (Forbidden, Invalid):
                    await asyncio.sleep(_PAUSE_SECONDS)

    # What simulations have too

    @property
    def store(self) -> Self:
        """Where objects are."""
        return self

    async def job(self, name: str) -> Object:
        """A Job; raises NotFound."""
        if found := self.find(JOB, name):
            return found
        raise NotFound(name)

    async def pods(self) -> list[Object]:
        """All pods."""
        return self.all(POD)

    async def settle(self, *, finish_pods: bool = True) -> None:
        """Nothing: who can tell when a controller elsewhere is done? Wait for what it does."""

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    # What users do

    async def create(self, kind: Kind, obj: Object) -> Object:
        """Create an object, in the namespace if it is of one."""
        if kind.namespaced:
            obj = {**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}}
        return await self.cluster.create(kind, obj)

    async def create_apart(self, kind: Kind, obj: Object) -> Object:
        """Create an object that is in no namespace; it is taken away with this one, at last."""
        made = await self.create(kind, obj)
        self._apart.append((kind, made["metadata"]["name"]))
        return made

    async def create_job(self, job: Object) -> Object:
        """Create a Job whose pods can only come to the node here."""
        return await self._told_of(await self.create(JOB, for_node(job, self.node)))

    async def try_job(self, job: Object) -> Object:
        """Have the server judge a new Job without keeping it; returns what it would keep."""
        metadata = {**job["metadata"], "namespace": self.namespace}
        answer = await self.cluster.connection.request(
            "POST",
            object_path(JOB, self.namespace),
            Asked("create", JOB, self.namespace),
            query=[("dryRun", "All")],
            body=msgspec.json.encode({**job, "metadata": metadata}),
        )
        kept: Object = msgspec.json.decode(answer.body)
        return kept

    async def patch_job(self, name: str, patch: Object) -> Object:
        """Change a Job."""
        return await self._told_of(await self.cluster.patch(JOB, self.namespace, name, patch))

    async def _told_of(self, job: Object) -> Object:
        """Wait until the copy here is as new as a Job that was written."""
        version = job["metadata"]["resourceVersion"]
        await self.until(lambda: any(told["metadata"]["resourceVersion"] == version
                                     for told in self.written))  # fmt: skip
        return job

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object, and wait until the copy here knows that it goes."""
        await self.cluster.delete(kind, namespace, name)
        known = self.find(kind, name) if namespace == self.namespace and kind in WATCHED else None
        if known is None:
            return

        def goes() -> bool:
            there = self.find(kind, name)
            if there is None or there["metadata"]["uid"] != known["metadata"]["uid"]:
                return True
            return "deletionTimestamp" in there["metadata"]

        await self.until(goes)

    async def delete_pod(self, name: str) -> None:
        """Delete a pod."""
        await self.cluster.delete(POD, self.namespace, name)

    async def command(self, job: str, action: str) -> None:
        """Give an order about a Job."""
        found = await self.until(lambda: self.find(JOB, job))
        assert found
        target = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": job,
                  "uid": found["metadata"]["uid"], "controller": True,
                  "blockOwnerDeletion": True}  # fmt: skip
        metadata = {"generateName": f"{job}-"}
        await self.create(COMMAND, {"metadata": metadata, "action": action, "target": target})

    # What scheduler and node do

    async def admit(self, phase: str = "Inqueue", conditions: Any = None) -> None:
        """Be the gang scheduler: set the phase of the PodGroup of each Job, once it is there.

        A cluster that has one does that itself; then only its admission is waited for.
        """
        if self.facts.scheduler:
            await self.until(lambda: self.groups() and all(map(_is_admitted, self.groups())))
            return
        status: Object = {"phase": phase, **({"conditions": conditions} if conditions else {})}
        for group in await self.until(self.groups):
            await self.cluster.patch(
                POD_GROUP,
                self.namespace,
                group["metadata"]["name"],
                {"status": status},
                subresource="status" if self.facts.group_status else "",
            )

    async def admit_again(self) -> None:
        """Be the gang scheduler, of gangs that have begun anew."""
        if not self.facts.scheduler:
            await self.until(lambda: self.groups() and not any(map(_is_admitted, self.groups())))
        await self.admit()

    async def run_pod(self, name: str) -> None:
        """Be scheduler and node: bind a pod that nobody gates, and have it run."""
        await self.until(lambda: self._may_be_bound(name))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                   "target": {"apiVersion": "v1", "kind": "Node", "name": self.node}}  # fmt: skip
        with contextlib.suppress(Conflict):  # the cluster's scheduler was faster
            await self.cluster.connection.request(
                "POST",
                object_path(POD, self.namespace, name, "binding"),
                Asked("create", POD, self.namespace, name, "binding"),
                body=msgspec.json.encode(binding),
            )
        await self._tell_of(name, running(await self._pod(name)))

    async def end_pod(self, name: str, exit_code: int = 0) -> None:
        """Be the node: the containers of a pod have ended."""
        await self._tell_of(name, ended(await self._pod(name), exit_code))

    async def restart_containers(self, name: str, count: int, exit_code: int = 1) -> None:
        """Be the node: containers have ended and been started again ``count`` times."""
        await self._tell_of(name, restarted(await self._pod(name), count, exit_code))

    async def hold_pods(self, hold: bool) -> None:
        """Let pods that are told to go take their time, or come to their end."""
        self._ends_pods = not hold
        await self.tell()

    async def _end_pods(self) -> None:
        """Be the node: pods that are told to go come to their end."""
        asked: set[str] = set()

        def to_end() -> Any:
            pods = self.leaving() if self._ends_pods else ()
            return [pod for pod in pods if pod["metadata"]["uid"] not in asked]

        while True:
            for pod in await self.until(to_end, patience=None):
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                asked.add(uid)
                with contextlib.suppress(NotFound, Conflict):
                    await self.cluster.delete(
                        POD, self.namespace, name, uid=uid, grace_period_seconds=0
                    )

    def _may_be_bound(self, name: str) -> bool:
        pod = self.find(POD, name)
        return pod is not None and not pod["spec"].get("schedulingGates")

    async def _pod(self, name: str) -> Object:
        return await self.cluster.get(POD, self.namespace, name)

    async def _tell_of(self, name: str, status: Object) -> None:
        told = {"status": status}
        await self.cluster.patch(POD, self.namespace, name, told, subresource="status")

    async def list(self, kind: Kind) -> ObjectList:
        """All objects of a kind."""
        return ObjectList(self.all(kind), "")


def _is_admitted(group: Object) -> bool:
    return (group.get("status") or {}).get("phase") in ("Inqueue", "Running")
