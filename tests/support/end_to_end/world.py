"""One namespace of a tested cluster: what is in it, and all who act there but the controller.

It can stand where tests/support/simulation.py does: the same is done by the same names, here
through the API. What happens is known from watches.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Self, TypeVar

import msgspec

from vcjob.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    EVENT,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.controller.cluster import Conflict, EventType, NotFound, ObjectList
from vcjob.core.times import timestamp
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.connection import object_path
from vcjob.kubernetes.errors import Asked

T = TypeVar("T")
WATCHED = (JOB, POD, POD_GROUP, SERVICE, CONFIG_MAP, NETWORK_POLICY, SECRET,
           PERSISTENT_VOLUME_CLAIM, EVENT)  # fmt: skip
PLAYED = "vcjob-test.example/node"
"""Label and taint of nodes that are played."""
_IN_EVERY_NAMESPACE = frozenset({"kube-root-ca.crt"})
_PATIENCE_SECONDS = 20.0
_AMOUNTS = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}


class World:
    """A namespace, a node of its own that is played, and a copy of all objects that is kept up.

    ``written`` are the Jobs as a watch told them, one after each change, and ``made`` the names of
    pods in the order in which they came.
    """

    def __init__(
        self, cluster: KubernetesCluster, namespace: str, *, has_scheduler: bool,
        group_has_status: bool,
    ) -> None:  # fmt: skip
        self.cluster = cluster
        self.namespace = self.node = namespace
        self.has_scheduler = has_scheduler
        self._group_part = "status" if group_has_status else ""
        self.written: list[Object] = []
        self.made: list[str] = []
        self._changes = 0
        self._objects: dict[Kind, dict[str, Object]] = {kind: {} for kind in WATCHED}
        self._changed = asyncio.Condition()
        self._ends_pods = True

    @classmethod
    @contextlib.asynccontextmanager
    async def on(
        cls, cluster: KubernetesCluster, *, has_scheduler: bool, group_has_status: bool,
        has_accounts: bool,
    ) -> AsyncIterator[Self]:  # fmt: skip
        """A new namespace with its node, both taken away at the end."""
        made = await cluster.create(NAMESPACE, {"metadata": {"generateName": "vcjob-test-"}})
        world = cls(
            cluster, made["metadata"]["name"], has_scheduler=has_scheduler,
            group_has_status=group_has_status,
        )  # fmt: skip
        tasks: list[asyncio.Task[None]] = []
        try:
            await world._make_node()
            if has_accounts:
                await world._wait_for_account()
            for kind in WATCHED:
                listed = await cluster.list(kind, world.namespace)
                tasks.append(asyncio.create_task(world._follow(kind, listed)))
            tasks.append(asyncio.create_task(world._end_pods()))
            yield world
            for task in tasks:
                assert not task.done(), task.exception()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await world._take_away()

    async def _make_node(self) -> None:
        """Be a kubelet: a node is there, is ready, and repels whoever is not sent to it."""
        metadata = {"name": self.node, "labels": {PLAYED: self.node}}
        spec = {"taints": [{"key": PLAYED, "effect": "NoSchedule"}]}
        await self.cluster.create(NODE, {"metadata": metadata, "spec": spec})
        now = timestamp(time.time())
        ready = {"type": "Ready", "status": "True", "reason": "Played", "message": "by a test",
                 "lastHeartbeatTime": now, "lastTransitionTime": now}  # fmt: skip
        status = {"capacity": _AMOUNTS, "allocatable": _AMOUNTS, "conditions": [ready]}
        await self.cluster.patch(NODE, "", self.node, {"status": status}, subresource="status")
        await self.cluster.patch(NODE, "", self.node, {"spec": spec})  # servers add "not ready"

    async def _wait_for_account(self) -> None:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            async for _, account in changes(self.cluster, SERVICE_ACCOUNT, self.namespace):
                if account["metadata"]["name"] == "default":
                    return

    async def _take_away(self) -> None:
        for kind in (JOB, POD):
            for obj in (await self.cluster.list(kind, self.namespace)).items:
                with contextlib.suppress(NotFound):
                    name = obj["metadata"]["name"]
                    await self.cluster.delete(kind, self.namespace, name, grace_period_seconds=0)
        for kind, name in ((NAMESPACE, self.namespace), (NODE, self.node)):
            with contextlib.suppress(NotFound):
                await self.cluster.delete(kind, "", name)

    async def _follow(self, kind: Kind, listed: ObjectList) -> None:
        known = self._objects[kind]
        known.update((obj["metadata"]["name"], obj) for obj in listed.items)
        async for event in self.cluster.watch(kind, listed.resource_version, self.namespace):
            if event.type is EventType.BOOKMARK:
                continue
            name = event.object["metadata"]["name"]
            if event.type is EventType.DELETED:
                known.pop(name, None)
            else:
                known[name] = event.object
                if kind == JOB:
                    self.written.append(event.object)
                elif kind == POD and event.type is EventType.ADDED:
                    self.made.append(name)
            self._changes += 1
            async with self._changed:
                self._changed.notify_all()

    async def _end_pods(self) -> None:
        """Be a kubelet: pods of the node that are told to go come to their end."""
        asked: set[str] = set()

        def to_end() -> list[Object]:
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

    # What there is

    @property
    def store(self) -> Self:
        """Where objects are, as a simulation has it."""
        return self

    def all(self, kind: Kind) -> list[Object]:
        """All objects of a kind by name, without those that servers put into every namespace."""
        known = self._objects[kind]
        return [known[name] for name in sorted(known) if name not in _IN_EVERY_NAMESPACE]

    def leaving(self) -> list[Object]:
        """Pods that are told to go and are not gone."""
        return [pod for pod in self.all(POD) if "deletionTimestamp" in pod["metadata"]]

    def find(self, kind: Kind, name: str) -> Object | None:
        """An object, None if there is none."""
        return self._objects[kind].get(name)

    async def job(self, name: str) -> Object:
        """A Job; raises NotFound."""
        if found := self.find(JOB, name):
            return found
        raise NotFound(name)

    async def pods(self) -> list[Object]:
        """All pods."""
        return self.all(POD)

    async def events(self) -> list[Object]:
        """All Events about Jobs."""
        return self.job_events()

    def job_events(self) -> list[Object]:
        """All Events about Jobs."""
        return [one for one in self.all(EVENT) if one["involvedObject"].get("kind") == "Job"]

    def says(self) -> str:
        """What Jobs and Events say, for those who look for a reason."""
        said = [f"Job {job['metadata']['name']}: {(job.get('status') or {}).get('state')}"
                for job in self.all(JOB)]  # fmt: skip
        pods = [f"{pod['metadata']['name']} {pod['status'].get('phase')}" for pod in self.all(POD)]
        events = [f"{one['reason']}: {one['message']}" for one in self.job_events()]
        return "; ".join((*said, f"pods: {', '.join(pods) or 'none'}", *events))

    async def until(self, right: Callable[[], T], patience: float | None = _PATIENCE_SECONDS) -> T:
        """Wait until something can be told from the objects, and return it; raises TimeoutError."""
        async with asyncio.timeout(patience), self._changed:
            return await self._changed.wait_for(right)

    async def change(self) -> None:
        """Wait until something is not as it was; raises TimeoutError."""
        before = self._changes
        await self.until(lambda: self._changes != before)

    async def phase(self, name: str, phase: str) -> Object:
        """Wait for a phase of a Job; returns the Job. Raises TimeoutError."""

        def reached() -> Object | None:
            job = self.find(JOB, name)
            state = ((job or {}).get("status") or {}).get("state") or {}
            return job if state.get("phase") == phase else None

        job = await self.until(reached)
        assert job
        return job

    # What users do

    async def create(self, kind: Kind, obj: Object) -> Object:
        """Create an object in the namespace."""
        metadata = {**obj["metadata"], "namespace": self.namespace} if kind.namespaced else {}
        return await self.cluster.create(kind, {**obj, "metadata": metadata or obj["metadata"]})

    async def create_job(self, job: Object) -> Object:
        """Create a Job whose pods can only come to the node here."""
        return await self.create(JOB, self._for_node(job) if self.has_scheduler else job)

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object."""
        await self.cluster.delete(kind, namespace, name)

    async def delete_pod(self, name: str) -> None:
        """Delete a pod."""
        await self.cluster.delete(POD, self.namespace, name)

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
        return await self.cluster.patch(JOB, self.namespace, name, patch)

    async def command(self, job: str, action: str) -> None:
        """Give an order about a Job."""
        found = await self.until(lambda: self.find(JOB, job))
        assert found
        uid = found["metadata"]["uid"]
        target = {"apiVersion": JOB.api_version, "kind": "Job", "name": job, "uid": uid,
                  "controller": True, "blockOwnerDeletion": True}  # fmt: skip
        metadata = {"generateName": f"{job}-"}
        await self.create(COMMAND, {"metadata": metadata, "action": action, "target": target})

    async def settle(self, *, finish_pods: bool = True) -> None:
        """Nothing: who can tell when a controller elsewhere is done? Wait for what it does."""

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    # What scheduler and node do

    async def hold_pods(self, hold: bool) -> None:
        """Let pods that are told to go take their time, or come to their end."""
        self._ends_pods = not hold
        async with self._changed:
            self._changed.notify_all()

    async def admit(self, phase: str = "Inqueue", conditions: Any = None) -> None:
        """Be the gang scheduler: set the phase of the PodGroup of each Job, once it is there.

        A cluster that has one does that itself; then only its admission is waited for.
        """
        if self.has_scheduler:
            await self.until(lambda: all(map(_is_admitted, self.groups())) and self.groups())
            return
        status: Object = {"phase": phase, **({"conditions": conditions} if conditions else {})}
        for group in await self.until(self.groups):
            name = group["metadata"]["name"]
            await self.cluster.patch(
                POD_GROUP, self.namespace, name, {"status": status}, subresource=self._group_part
            )

    async def admit_again(self) -> None:
        """Be the gang scheduler, of gangs that have begun anew."""
        if not self.has_scheduler:
            await self.until(lambda: self.groups() and not any(map(_is_admitted, self.groups())))
        await self.admit()

    def groups(self) -> list[Object]:
        """The PodGroups of the Jobs that there are; empty while one of them is missing."""
        jobs = {job["metadata"]["uid"] for job in self.all(JOB)}
        found = [(owner["uid"], group) for group in self.all(POD_GROUP)
                 for owner in group["metadata"].get("ownerReferences") or ()]  # fmt: skip
        ours = [group for uid, group in found if uid in jobs]
        return ours if {uid for uid, _ in found} >= jobs else []

    async def run_pod(self, name: str) -> None:
        """Be scheduler and node: bind a pod, and have it run."""
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                   "target": {"apiVersion": "v1", "kind": "Node", "name": self.node}}  # fmt: skip
        with contextlib.suppress(Conflict):  # the cluster's scheduler was faster
            await self.cluster.connection.request(
                "POST",
                object_path(POD, self.namespace, name, "binding"),
                Asked("create", POD, self.namespace, name, "binding"),
                body=msgspec.json.encode(binding),
            )
        now = timestamp(time.time())
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]
        state = {"running": {"startedAt": now}}
        address = {"podIP": "10.99.0.2", "podIPs": [{"ip": "10.99.0.2"}], "hostIP": "10.99.0.1"}
        told = {"startTime": now, "conditions": conditions, **address}
        await self._tell(name, "Running", state, **told)

    async def end_pod(self, name: str, exit_code: int = 0) -> None:
        """Be the node: the containers of a pod have ended."""
        now = timestamp(time.time())
        ended = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed",
                 "startedAt": now, "finishedAt": now}  # fmt: skip
        await self._tell(name, "Failed" if exit_code else "Succeeded", {"terminated": ended})

    async def restart_containers(self, name: str, count: int, exit_code: int = 1) -> None:
        """Be the node: containers have ended and been started again ``count`` times."""
        now = timestamp(time.time())
        last = {"exitCode": exit_code, "reason": "Error", "startedAt": now, "finishedAt": now}
        more = {"lastState": {"terminated": last}, "restartCount": count}
        await self._tell(name, "Running", {"running": {"startedAt": now}}, more)

    async def _tell(
        self, name: str, phase: str, state: Object, more: Object | None = None, **status: Any
    ) -> None:
        pod = await self.cluster.get(POD, self.namespace, name)
        containers = [
            {"name": one["name"], "image": one["image"], "imageID": "", "state": state,
             "ready": phase == "Running", "restartCount": 0, **(more or {})}
            for one in pod["spec"]["containers"]
        ]  # fmt: skip
        told = {"phase": phase, "containerStatuses": containers, **status}
        await self.cluster.patch(POD, self.namespace, name, {"status": told}, subresource="status")

    def _for_node(self, job: Object) -> Object:
        """The Job with pods that the cluster's scheduler can bind to the node here only."""
        tasks = []
        for task in job["spec"]["tasks"]:
            spec = task["template"]["spec"]
            tolerations = [*(spec.get("tolerations") or ()), {"key": PLAYED, "operator": "Exists"}]
            selector = {**(spec.get("nodeSelector") or {}), PLAYED: self.node}
            spec = {**spec, "nodeSelector": selector, "tolerations": tolerations}
            tasks.append({**task, "template": {**task["template"], "spec": spec}})
        return {**job, "spec": {**job["spec"], "tasks": tasks}}

    async def list(self, kind: Kind) -> ObjectList:
        """All objects of a kind."""
        return ObjectList(self.all(kind), "")


def _is_admitted(group: Object) -> bool:
    return (group.get("status") or {}).get("phase") in ("Inqueue", "Running")
