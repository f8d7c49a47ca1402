"""Replaying a recording of genuine Volcano on our controller, and telling where the two differ."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from faults import Fault, Faulty
from recounting import COUNTERS, Numbers, Recount
from simulation import Simulation

from vcjob.api.kinds import (
    CONFIG_MAP,
    JOB,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.names import JOB_RETRY_COUNT, JOB_VERSION, STATE_KEY
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, Forbidden, NotFound
from vcjob.local.store import Store

KINDS = {
    "services": SERVICE,
    "configmaps": CONFIG_MAP,
    "networkpolicies": NETWORK_POLICY,
    "secrets": SECRET,
    "persistentvolumeclaims": PERSISTENT_VOLUME_CLAIM,
}
_TIME_FOR_SECOND_TRY = 0.2
Between = Callable[[Simulation, int, Object, Object], Awaitable[None]]
"""Gets the world, the number of the step before, and how it is after that: of Volcano and of us."""

Difference = tuple[int, str, Any, Any]
"""Step, what differs, Volcano's and ours."""


class WithQuota(Faulty):
    """A cluster where a namespace may have only ``most`` pods (None: any number)."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.most: int | None = None

    async def create(self, kind: Kind, obj: Object) -> Object:
        if kind == POD and self.most is not None:
            there = len((await self.store.list(POD)).items)
            if there >= self.most:
                raise Forbidden(f"exceeded quota: q, used: pods={there}, limited: pods={self.most}")
        return await super().create(kind, obj)


class Replay:
    """One recording being replayed."""

    controller_options: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        recording: Object,
        fault: Fault | None = None,
        at: int = 0,
        between: Between | None = None,
    ) -> None:
        """``fault`` happens at the ``at``-th write; ``between`` steps something else may happen."""
        self.recording = recording
        self.between = between
        self.fault, self.at = fault, at
        self.writes = 0
        self.quota: WithQuota | None = None
        self.statuses: list[Object] = []
        # What Events say in the end.
        self.told: list[str] = []
        # Step, the statuses that Volcano writes in it and ours, each after the one before.
        self.courses: list[tuple[int, list[Object], list[Object]]] = []
        self.recount = Recount()
        # What our status says of pods after each step, and the same counted anew.
        self.counted: list[tuple[Numbers, Numbers]] = []

    def _with_quota(self, store: Store) -> Cluster:
        self.quota = WithQuota(store)
        self.quota.arm(self.fault, self.at)
        return self.quota

    async def differences(self) -> list[Difference]:
        """Replay, and compare after each step."""
        simulation = Simulation(wrap=self._with_quota, controller_options=self.controller_options)
        simulation.namespace = "lifecycle"
        await simulation.start()
        await simulation.settle()
        followers = [
            asyncio.create_task(follow(simulation))
            for follow in (self._follow_jobs, self._follow_pods)
        ]
        job = {"metadata": {"name": "lc"}, "spec": self.recording["spec"]}
        found: list[Difference] = []
        last: list[Object] = [{}, {}]
        try:
            for number, step in enumerate(self.recording["steps"]):
                self.statuses.clear()
                for op in step["ops"]:
                    await self.do(simulation, op, job)
                    if self.fault:
                        await simulation.advance(_TIME_FOR_SECOND_TRY, finish_pods=False)
                await simulation.settle()
                if self.fault:
                    await simulation.advance(_TIME_FOR_SECOND_TRY)
                after = await after_step(simulation)
                if isinstance(after["job"], dict):
                    self.counted.append(self.recount.now())
                found += ((number, *difference) for difference in _compare(step["after"], after))
                recorded = filter(is_status, step["statuses"])
                theirs = [last[0], *map(as_ours, recorded)]
                ours = [last[1], *map(_status, self.statuses)]
                last = [theirs[-1], ours[-1]]
                if self.between:
                    await self.between(simulation, number, step["after"], after)
                if number not in self.recording["varies"]:
                    self.courses.append((number, theirs, ours))
            self.told = [_said(event) for event in await simulation.events()]
        finally:
            assert self.quota
            self.writes = self.quota.writes
            for follower in followers:
                follower.cancel()
            await simulation.crash()
        return found

    def different_courses(self) -> Iterator[Difference]:
        """Where the statuses of a step, whole and one after another, are not Volcano's."""
        for step, *both in self.courses:
            theirs, ours = (_in_words(statuses) for statuses in both)
            if theirs != ours:
                yield step, "statuses", theirs, ours

    async def _follow_jobs(self, simulation: Simulation) -> None:
        async for event in simulation.store.watch(JOB, "0"):
            self.recount.saw_job(event)
            if event.type != "DELETED":
                self.statuses.append(event.object)

    async def _follow_pods(self, simulation: Simulation) -> None:
        async for event in simulation.store.watch(POD, "0"):
            self.recount.saw_pod(event)

    async def do(self, s: Simulation, op: Object, job: Object) -> None:
        """Carry out one operation of a recording."""
        match op["op"]:
            case "createJob":
                await s.create_job(job)
            case "podGroupPhase":
                await s.admit(op["phase"], op.get("conditions"))
            case "run":
                for name in await self._pods(s, op["pods"], "Pending"):
                    await s.run_pod(name)
                    await s.settle(finish_pods=False)
            case "succeed":
                for name in await self._pods(s, op["pods"], "Running"):
                    await s.end_pod(name)
                    await s.settle(finish_pods=False)
            case "fail":
                await s.end_pod(f"lc-{op['pod']}", op["exitCode"])
            case "deletePod":
                self.recount.will_delete(f"lc-{op['pod']}")
                await s.delete_pod(f"lc-{op['pod']}")
            case "restartCount":
                await s.restart_containers(f"lc-{op['pod']}", op["count"])
            case "command":
                await s.command("lc", op["action"])
            case "scale":
                await s.patch_job("lc", await _scaled(s, op))
            case "patchJob":
                await s.patch_job("lc", op["patch"])
            case "deleteJob":
                await s.store.delete(JOB, s.namespace, "lc")
            case "create":
                await self._create(s, op["object"])
            case "delete":
                await self._delete(s, op)
            case "wait":
                await s.advance(op["seconds"])
            case other:
                raise AssertionError(f"unknown operation {other}")
        await s.settle(finish_pods=False)

    async def _pods(self, s: Simulation, pods: Any, phase: str) -> list[str]:
        if isinstance(pods, list):
            return [f"lc-{pod}" for pod in pods]
        there = await s.pods()
        return sorted(p["metadata"]["name"] for p in there if p["status"]["phase"] == phase)

    async def _create(self, s: Simulation, obj: Object) -> None:
        if obj["kind"] == "ResourceQuota":
            assert self.quota
            self.quota.most = int(obj["spec"]["hard"]["pods"])
            return
        kind = {"Service": SERVICE, "ConfigMap": CONFIG_MAP, "NetworkPolicy": NETWORK_POLICY}
        metadata = {"namespace": s.namespace, **obj["metadata"]}
        await s.store.create(kind[obj["kind"]], {**obj, "metadata": metadata})

    async def _delete(self, s: Simulation, op: Object) -> None:
        if op["resource"] == "resourcequotas":
            assert self.quota
            self.quota.most = None
        else:
            await s.store.delete(KINDS[op["resource"]], s.namespace, op["name"])


async def _scaled(s: Simulation, op: Object) -> Object:
    tasks = []
    for task in (await s.job("lc"))["spec"]["tasks"]:
        changed = dict(task)
        if task["name"] in op.get("replicas", {}):
            changed["replicas"] = op["replicas"][task["name"]]
        if task["name"] in op.get("taskMinAvailable", {}):
            changed["minAvailable"] = op["taskMinAvailable"][task["name"]]
        tasks.append(changed)
    spec: Object = {"tasks": tasks}
    if "minAvailable" in op:
        spec["minAvailable"] = op["minAvailable"]
    return {"spec": spec}


async def after_step(s: Simulation) -> Object:
    """The state of things in the shape of the recordings."""
    after: Object = {}
    try:
        job = await s.job("lc")
        uid = job["metadata"]["uid"]
        after["job"] = _status(job)
    except NotFound:
        uid = ""
        after["job"] = "<404 NotFound>"
    after["pods"] = [
        {
            "name": pod["metadata"]["name"],
            "phase": pod["status"]["phase"],
            "jobVersion": pod["metadata"]["annotations"][JOB_VERSION],
            "jobRetryCount": pod["metadata"]["annotations"][JOB_RETRY_COUNT],
        }
        for pod in sorted(await s.pods(), key=lambda pod: str(pod["metadata"]["name"]))
    ]
    after["podGroups"] = [
        {
            "name": group["metadata"]["name"].replace(uid, "<uid>"),
            "phase": (group.get("status") or {}).get("phase"),
            "minMember": group["spec"].get("minMember"),
            "minTaskMember": group["spec"].get("minTaskMember"),
            "owned": group["metadata"]["ownerReferences"][0]["uid"] == uid,
        }
        for group in (await s.store.list(POD_GROUP)).items
    ]
    for plural, kind in KINDS.items():
        objects = (await s.store.list(kind)).items
        after[plural] = sorted(obj["metadata"]["name"] for obj in objects)
        for obj in objects:
            if plural == "configmaps" and obj["metadata"]["name"] == "lc-svc":
                after["svcConfigMapData"] = obj["data"]
    return after


def _status(job: Object) -> Object:
    """A Job's status in the shape of the recordings."""
    status = job.get("status") or {}
    shown: Object = {"phase": status.get("state", {}).get("phase")}
    for name in (*COUNTERS, "minAvailable", "retryCount", "version"):
        shown[name] = status.get(name, 0)
    shown["conditions"] = [one["status"] for one in status.get("conditions", ())]
    shown["taskStatusCount"] = {
        task: counts["phase"] for task, counts in status.get("taskStatusCount", {}).items()
    }
    marks = status.get("controlledResources", {})
    shown["controlledResources"] = {k: v for k, v in marks.items() if k != STATE_KEY}
    shown["runningDuration"] = "runningDuration" in status
    return shown


def as_ours(status: Object) -> Object:
    """A status of a recording in the shape of ours, with what it leaves out."""
    shown: Object = dict.fromkeys((*COUNTERS, "minAvailable", "retryCount", "version"), 0)
    shown |= {"taskStatusCount": {}, "controlledResources": {}, **status}
    shown["minAvailable"] = shown["minAvailable"] or 0
    shown["runningDuration"] = "runningDuration" in status
    return shown


def _said(event: Object) -> str:
    often = f" ({event['count']} times)" if event["count"] > 1 else ""
    return f"{event['type']} {event['reason']}: {event['message']}{often}"


def is_status(status: Any) -> bool:
    """Whether a recorded status is one, and not the word that the Job is gone."""
    return isinstance(status, dict)


def _in_words(statuses: list[Object]) -> list[str]:
    """Each status after the first in one line that has everything; without repeats."""
    lines = [_line(status) for status in statuses if status]
    return [line for line, _ in itertools.groupby(lines)][1 if statuses[0] else 0 :]


def _line(status: Object) -> str:
    numbers = (*COUNTERS, "minAvailable", "retryCount", "version")
    parts = [str(status["phase"]), *(f"{name} {status[name]}" for name in numbers if status[name])]
    for task, counts in sorted(status["taskStatusCount"].items()):
        parts.append(f"{task}: " + " ".join(f"{one} {n}" for one, n in sorted(counts.items())))
    parts.append("conditions " + " ".join(status["conditions"]))
    if marks := status["controlledResources"]:
        parts.append("marks " + " ".join(f"{key}={mark}" for key, mark in sorted(marks.items())))
    if status["runningDuration"]:
        parts.append("runningDuration")
    return ", ".join(parts)


def _compare(theirs: Object, ours: Object) -> Iterator[tuple[str, Any, Any]]:
    for part in ours.keys() | theirs.keys():
        one, other = theirs.get(part), ours.get(part)
        if part == "job" and isinstance(one, dict) and isinstance(other, dict):
            one = as_ours(one)
            for field in sorted(other.keys()):
                if one[field] != other[field]:
                    yield f"job.{field}", one[field], other[field]
        elif part == "pods" and one != other:
            yield from _compare_pods(one or [], other or [])
        elif one != other:
            yield part, one, other


def _compare_pods(theirs: list[Object], ours: list[Object]) -> Iterator[tuple[str, Any, Any]]:
    names = [[pod["name"] for pod in pods] for pods in (theirs, ours)]
    if names[0] != names[1]:
        yield "pods", names[0], names[1]
        return
    for field in theirs[0] if theirs else ():
        changed = [
            (one["name"], one[field], other[field])
            for one, other in zip(theirs, ours, strict=True)
            if one[field] != other[field]
        ]
        if changed:
            yield (
                f"pods.{field}",
                {name: value for name, value, _ in changed},
                {name: value for name, _, value in changed},
            )
