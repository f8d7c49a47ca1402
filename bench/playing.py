"""A node and a scheduler played through an API server, for pods that nothing else starts."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import COMMAND, JOB, POD, POD_GROUP, QUEUE
from vcjob.api.names import JOB_NAME
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.controller.cluster import AlreadyExists, EventType, NotFound
from vcjob.controller.parallel import for_each
from vcjob.kubernetes.cluster import KubernetesCluster

T = TypeVar("T")

GATES = [{"name": "bench.vcjob/never"}]
NAMESPACE = "default"
IN_FLIGHT = 32

RUNNING = {"phase": "Running", "containerStatuses": [{
    "name": "main", "image": "none", "imageID": "", "ready": True, "restartCount": 0,
    "state": {"running": {}}}]}  # fmt: skip
SUCCEEDED = {"phase": "Succeeded", "containerStatuses": [{
    "name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0,
    "state": {"terminated": {"exitCode": 0}}}]}  # fmt: skip


def job(name: str, replicas: int) -> Object:
    """A Job of pods that no scheduler places, with the plugins svc and env."""
    spec = {
        "restartPolicy": "Never",
        "schedulingGates": GATES,
        "containers": [{"name": "main", "image": "none", "command": ["true"]}],
    }
    task = {"name": "worker", "replicas": replicas, "template": {"spec": spec}}
    whole = {"tasks": [task], "plugins": {"svc": [], "env": []}, "minAvailable": replicas}
    return apply_defaults(
        {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": whole,
        }
    )


class Player:
    """Creates Jobs and plays what becomes of their pods."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self.cluster = cluster

    async def ensure_queue(self) -> None:
        """Have the queue that the Jobs use."""
        with contextlib.suppress(AlreadyExists):
            await self.cluster.create(QUEUE, {"metadata": {"name": "default"}, "spec": {}})

    async def admit(self) -> None:
        """Be the scheduler that admits every PodGroup, until cancelled."""
        async for event, group in changes(self.cluster, POD_GROUP, NAMESPACE):
            if event is not EventType.DELETED and not (group.get("status") or {}).get("phase"):
                with contextlib.suppress(NotFound):
                    await self.cluster.patch(
                        POD_GROUP, NAMESPACE, group["metadata"]["name"],
                        {"status": {"phase": "Inqueue"}},
                    )  # fmt: skip

    async def create(self, name: str, replicas: int) -> None:
        """Create a Job, and return when all its pods are there."""
        await self.cluster.create(JOB, job(name, replicas))
        seen: set[str] = set()
        async for event, pod in changes(self.cluster, POD, NAMESPACE, {JOB_NAME: name}):
            if event is not EventType.DELETED:
                seen.add(pod["metadata"]["name"])
            if len(seen) == replicas:
                return

    async def become(self, name: str, replicas: int, status: Object) -> None:
        """Be the node: tell that all pods of a Job are in this state."""
        await _all(
            [f"{name}-worker-{index}" for index in range(replicas)],
            lambda pod: self.cluster.patch(
                POD, NAMESPACE, pod, {"status": status}, subresource="status"
            ),
        )

    async def until(self, name: str, phase: str) -> Object:
        """The Job, once it is in a phase."""
        async for _, obj in changes(self.cluster, JOB, NAMESPACE):
            state = (obj.get("status") or {}).get("state") or {}
            if obj["metadata"]["name"] == name and state.get("phase") == phase:
                return obj
        raise AssertionError("a watch does not end")

    async def abort(self, name: str, uid: str) -> None:
        """Suspend a Job, and return when it has no pods any more."""
        target = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": name, "uid": uid}
        metadata = {"name": f"abort-{name}", "namespace": NAMESPACE}
        order = {"metadata": metadata, "action": "AbortJob", "target": target}
        await self.cluster.create(COMMAND, order)
        await self.until(name, "Aborted")

    async def delete(self, name: str) -> None:
        """Delete a Job, and return when the server has collected its pods."""
        labels = {JOB_NAME: name}
        pods = (await self.cluster.list(POD, NAMESPACE, labels)).items
        left = {pod["metadata"]["uid"]: pod for pod in pods}
        await self.cluster.delete(JOB, NAMESPACE, name)
        if not left:
            return
        async for event, pod in changes(self.cluster, POD, NAMESPACE, labels, known=left):
            if event is EventType.DELETED:
                left.pop(pod["metadata"]["uid"], None)
            if not left:
                return

    async def create_bare(self, name: str, count: int) -> None:
        """Create pods as the operator would, with nothing else to do."""
        template = job(name, 1)["spec"]["tasks"][0]["template"]

        async def create(index: int) -> None:
            metadata = {"name": f"{name}-{index}", "namespace": NAMESPACE, "labels": {"bare": name}}
            await self.cluster.create(POD, {"metadata": metadata, "spec": template["spec"]})

        await _all(range(count), create)
        await _all(
            range(count),
            lambda index: self.cluster.delete(POD, NAMESPACE, f"{name}-{index}"),
        )


async def _all(items: Iterable[T], call: Callable[[T], Awaitable[object]]) -> None:
    async def one(item: T) -> None:
        await call(item)

    if failures := await for_each(list(items), one, at_once=IN_FLIGHT):
        raise failures[0]
