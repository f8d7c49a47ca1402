"""Kubernetes' own scheduler, played: binds pods without gates, one by one, to nodes with room.

It knows nothing of gangs, and reckons for itself, so that tests compare two reckonings.
"""

import asyncio
from collections.abc import Iterable
from fractions import Fraction

from vcjob.api.kinds import NODE, POD
from vcjob.api.quantity import parse_quantity
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, Conflict, NotFound

NAME = "default-scheduler"


class KubeScheduler:
    """Binds pods by the name of ``default-scheduler``. ``bound`` counts them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._works = asyncio.Event()
        self._works.set()
        self.bound = 0

    def pause(self) -> None:
        """Bind nothing until told to go on."""
        self._works.clear()

    def go_on(self) -> None:
        """Bind again."""
        self._works.set()

    async def run(self) -> None:
        """Look at all pods and nodes after each change of a pod, until cancelled."""
        while True:
            since = (await self._cluster.list(POD)).resource_version
            await self._works.wait()
            await self.turn()
            async for _ in self._cluster.watch(POD, since):
                break
            await asyncio.sleep(0)

    async def turn(self) -> int:
        """Bind whatever fits, and say of the rest that it does not; returns how many were bound."""
        nodes = (await self._cluster.list(NODE)).items
        pods = (await self._cluster.list(POD)).items
        left = {node["metadata"]["name"]: room_of(node, pods) for node in nodes}
        before = self.bound
        for pod in sorted(pods, key=lambda one: int(one["metadata"]["resourceVersion"])):
            if is_schedulable(pod):
                await self._schedule(pod, nodes, left)
        return self.bound - before

    async def _schedule(
        self, pod: Object, nodes: list[Object], left: dict[str, dict[str, Fraction]]
    ) -> None:
        asks = requests(pod)
        fitting = [
            node["metadata"]["name"]
            for node in nodes
            if takes(node, pod) and fits(asks, left[node["metadata"]["name"]])
        ]
        place = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        uid = pod["metadata"]["uid"]
        try:
            if not fitting:
                message = f"0/{len(nodes)} nodes are available: {len(nodes)} Insufficient cpu."
                await self._tell(place, "False", "Unschedulable", message)
                return
            # As Kubernetes' does unless told otherwise: the emptiest node.
            chosen = max(fitting, key=lambda name: (left[name].get("cpu", Fraction(0)), name))
            await self._tell(place, "True")
            await self._cluster.patch(POD, *place, {"spec": {"nodeName": chosen}}, uid=uid)
        except (NotFound, Conflict):
            return
        self.bound += 1
        for name, amount in asks.items():
            left[chosen][name] -= amount

    async def _tell(self, place: tuple[str, str], status: str, *why: str) -> None:
        condition = {"type": "PodScheduled", "status": status}
        condition.update(zip(("reason", "message"), why, strict=False))
        told = {"status": {"conditions": [condition]}}
        await self._cluster.patch(POD, *place, told, subresource="status")


async def add_node(
    cluster: Cluster, name: str, cpu: str = "4", *, pods: str = "110", **spec: object
) -> None:
    """Be a kubelet: a node is there, and is ready."""
    labels = {"kubernetes.io/hostname": name}
    await cluster.create(NODE, {"metadata": {"name": name, "labels": labels}, "spec": dict(spec)})
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": pods}
    ready = {"type": "Ready", "status": "True"}
    status = {"status": {"allocatable": allocatable, "conditions": [ready]}}
    await cluster.patch(NODE, "", name, status, subresource="status")


def is_schedulable(pod: Object) -> bool:
    """Whether a pod waits for this scheduler."""
    spec = pod["spec"]
    waits = not (spec.get("nodeName") or spec.get("schedulingGates"))
    return waits and spec.get("schedulerName") == NAME and not is_over(pod) and is_wanted(pod)


def is_over(pod: Object) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def is_wanted(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def requests(pod: Object) -> dict[str, Fraction]:
    """What a pod requests, itself included."""
    total = {"pods": Fraction(1)}
    for container in pod["spec"].get("containers") or ():
        asked = (container.get("resources") or {}).get("requests") or {}
        for name, text in asked.items():
            total[name] = total.get(name, Fraction(0)) + parse_quantity(text)
    return total


def room_of(node: Object, pods: Iterable[Object]) -> dict[str, Fraction]:
    """What the pods leave of a node."""
    left = {name: parse_quantity(text) for name, text in node["status"]["allocatable"].items()}
    for pod in pods:
        if pod["spec"].get("nodeName") == node["metadata"]["name"] and not is_over(pod):
            for name, amount in requests(pod).items():
                left[name] = left.get(name, Fraction(0)) - amount
    return left


def fits(asks: dict[str, Fraction], left: dict[str, Fraction]) -> bool:
    return all(amount <= left.get(name, Fraction(0)) for name, amount in asks.items())


def takes(node: Object, pod: Object) -> bool:
    """Whether a node is open to a pod: cordons, taints (tolerated by key) and selectors."""
    spec = node.get("spec") or {}
    tolerated = {one.get("key") for one in pod["spec"].get("tolerations") or ()}
    repelled = any(taint["key"] not in tolerated for taint in spec.get("taints") or ())
    labels = node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    chosen = all(labels.get(key) == value for key, value in selector.items())
    return chosen and not repelled and not spec.get("unschedulable")
