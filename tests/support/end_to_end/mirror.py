"""A copy of all objects of one namespace, kept up by watches."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from vcjob.api.kinds import (
    CONFIG_MAP,
    EVENT,
    JOB,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, ObjectList, Unavailable
from vcjob.kubernetes.cluster import KubernetesCluster

T = TypeVar("T")
WATCHED = (JOB, POD, POD_GROUP, SERVICE, CONFIG_MAP, NETWORK_POLICY, SECRET,
           PERSISTENT_VOLUME_CLAIM, EVENT)  # fmt: skip
PATIENCE_SECONDS = 20.0
_IN_EVERY_NAMESPACE = frozenset(
    {"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"}
)
_PAUSE_SECONDS = 0.5
"""Before a watch that broke is taken up again."""


class Mirror:
    """What there is in a namespace.

    ``written`` are the Jobs as a watch told them, one after each change, and ``made`` the names of
    pods in the order in which they came.
    """

    def __init__(self, cluster: KubernetesCluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.written: list[Object] = []
        self.made: list[str] = []
        self._changes = 0
        self._objects: dict[Kind, dict[str, Object]] = {kind: {} for kind in WATCHED}
        self._changed = asyncio.Condition()

    async def follow(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Read what there is, and begin tasks that follow it."""
        tasks = []
        for kind in WATCHED:
            listed = await self.cluster.list(kind, self.namespace)
            tasks.append(group.create_task(self._follow(kind, listed)))
        return tasks

    async def _follow(self, kind: Kind, listed: ObjectList) -> None:
        known = self._objects[kind]
        known.update((obj["metadata"]["name"], obj) for obj in listed.items)
        since = listed.resource_version
        while True:
            try:
                async for event in self.cluster.watch(kind, since, self.namespace):
                    since = event.object["metadata"]["resourceVersion"]
                    if event.type is not EventType.BOOKMARK:
                        self._take(kind, event.type, event.object)
                        await self.tell()
            except Unavailable:
                await asyncio.sleep(_PAUSE_SECONDS)

    def _take(self, kind: Kind, happened: EventType, obj: Object) -> None:
        self._changes += 1
        name = obj["metadata"]["name"]
        if happened is EventType.DELETED:
            self._objects[kind].pop(name, None)
            return
        self._objects[kind][name] = obj
        if kind == JOB:
            self.written.append(obj)
        elif kind == POD and happened is EventType.ADDED:
            self.made.append(name)

    async def tell(self) -> None:
        """Have everybody who waits look again."""
        async with self._changed:
            self._changed.notify_all()

    def all(self, kind: Kind) -> list[Object]:
        """All objects of a kind by name, without those that servers put into every namespace."""
        known = self._objects[kind]
        return [known[name] for name in sorted(known) if name not in _IN_EVERY_NAMESPACE]

    def find(self, kind: Kind, name: str) -> Object | None:
        """An object, None if there is none."""
        return self._objects[kind].get(name)

    def leaving(self) -> list[Object]:
        """Pods that are told to go and are not gone."""
        return [pod for pod in self.all(POD) if "deletionTimestamp" in pod["metadata"]]

    def pending(self) -> list[str]:
        """Names of the pods that have not started."""
        waiting = (pod for pod in self.all(POD) if "deletionTimestamp" not in pod["metadata"])
        return [pod["metadata"]["name"] for pod in waiting
                if pod["status"].get("phase") == "Pending"]  # fmt: skip

    def job_events(self) -> list[Object]:
        """All Events about Jobs."""
        return [one for one in self.all(EVENT) if one["involvedObject"].get("kind") == "Job"]

    def groups(self) -> list[Object]:
        """The PodGroups of the Jobs that there are; empty while one of them is missing."""
        jobs = {job["metadata"]["uid"] for job in self.all(JOB)}
        found = [(owner["uid"], group) for group in self.all(POD_GROUP)
                 for owner in group["metadata"].get("ownerReferences") or ()]  # fmt: skip
        ours = [group for uid, group in found if uid in jobs]
        return ours if {uid for uid, _ in found} >= jobs else []

    def says(self) -> str:
        """What Jobs and Events say, for those who look for a reason."""
        said = [f"Job {job['metadata']['name']}: {(job.get('status') or {}).get('state')}"
                for job in self.all(JOB)]  # fmt: skip
        pods = [f"{pod['metadata']['name']} {pod['status'].get('phase')}" for pod in self.all(POD)]
        events = [f"{one['reason']}: {one['message']}" for one in self.job_events()]
        return "; ".join((*said, f"pods: {', '.join(pods) or 'none'}", *events))

    async def until(self, right: Callable[[], T], patience: float | None = PATIENCE_SECONDS) -> T:
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
