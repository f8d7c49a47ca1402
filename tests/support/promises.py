"""What is promised of every life of a Job, looked at from outside at each write.

Nothing here asks the controller what it meant: the store, the Job's status and docs/lifecycle.md
are all that is compared. What a write owes to a decision is looked up in the status that is stored
at that moment, since intent comes before effect. What holds at rest is in ``at_rest.py``.
"""

import asyncio
from typing import Any

from drawn_lives import NAME
from faults import Faulty
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
from vcjob.api.names import JOB_RETRY_COUNT, JOB_VERSION, OUT_OF_SYNC, TASK_INDEX, TASK_SPEC
from vcjob.api.types import Job, Object
from vcjob.controller.cluster import EventType, NotFound
from vcjob.controller.controller import Controller
from vcjob.core.indices import IndexSet
from vcjob.core.state import state_of
from vcjob.core.times import seconds_of

FINAL = ("Completed", "Failed", "Terminated")
ACTIVE = ("Pending", "Running", "Restarting")
ENDED = ("Succeeded", "Failed")
STOPPED = ("Aborting", "Completing", "Terminating")
_ON = {*STOPPED, "Restarting"}
GOES_ON_TO = {
    "": {"Pending"},
    "Pending": {"Running", *_ON},
    "Running": {"Pending", "Completed", "Failed", *_ON},
    "Restarting": {"Pending", "Failed", *STOPPED},
    "Aborting": {"Aborted", "Restarting"},
    "Completing": {"Completed"},
    "Terminating": {"Terminated"},
    "Aborted": {"Restarting"},
    **{phase: set() for phase in FINAL},
}

Slot = tuple[str, int]


class Promises:
    """Watches one simulation; ``wrong`` tells what was broken."""

    def __init__(self, simulation: Simulation, cluster: Faulty) -> None:
        self.simulation, self.cluster = simulation, cluster
        self.wrong: list[str] = []
        self.secrets_deleted = 0
        self.pods_made = 0
        self.cleaned: set[Slot] = set()
        """Places of pods that succeeded and are gone."""
        self.sure = True
        """Whether the controller can have seen all of these succeed."""
        self._witness: Controller | None = None
        self._has_cleaned = False
        self._ended: set[str] = set()
        self._succeeded: set[str] = set()
        self._keys: dict[str, set[str]] = {}
        self._statuses: dict[str, Object] = {}
        self._doomed: dict[str, set[str]] = {}
        self._followers: list[asyncio.Task[None]] = []
        cluster.before_create.append(self._check_creation)
        cluster.before_delete.append(self._check_deletion)
        cluster.before_patch.append(self._check_mark)

    def follow(self) -> None:
        """Look at all that is written from now on."""
        watched = (self._follow_jobs(), self._follow_keys(), self._follow_pods())
        self._followers = [*map(asyncio.create_task, watched)]

    def stop(self) -> None:
        """Look no longer; a look that failed raises what it failed with."""
        for follower in self._followers:
            if follower.done():
                follower.result()
            follower.cancel()

    @property
    def sees_all(self) -> bool:
        """Whether the controller is told of everything at once."""
        return self.simulation.controller is not None and not self.cluster.held

    async def rest(self) -> None:
        """Take note of what everybody knows by now."""
        self.sure = self.sure and self._is_witnessed
        self._witness, self._has_cleaned = self.simulation.controller, False
        if self.sees_all:
            pods = await self.simulation.pods()
            ended = {p["metadata"]["uid"] for p in pods if p["status"]["phase"] in ENDED}
            self._ended |= ended

    @property
    def _is_witnessed(self) -> bool:
        """Whether the controller that saw the last pods succeed did not die before it said so."""
        return not self._has_cleaned or self.simulation.controller is self._witness

    def _may_go(self, pod: Object, job: Object) -> bool:
        """Whether a pod has to go.

        One that has ended since the controller was last told of everything may go as one that runs.
        """
        return has_to_go(pod, job, ended=pod["metadata"]["uid"] in self._ended)

    async def _follow_jobs(self) -> None:
        async for change in self.simulation.store.watch(JOB, "0"):
            uid = change.object["metadata"]["uid"]
            if change.type is EventType.DELETED:
                continue
            if uid not in self._statuses:  # pods of a Job before are none of this one's
                self.cleaned, self.sure = set(), True
            replicas = replicas_of(change.object)
            wanted = {(t, index) for t, index in self.cleaned if index < replicas.get(t, 0)}
            if wanted != self.cleaned and self.simulation.controller_options.get("status_interval"):
                self.sure = False  # a place that comes back at once may be remembered as done
            self.cleaned = wanted
            old = self._statuses.get(uid, {})
            self._statuses[uid] = new = change.object.get("status") or {}
            if new:
                await self._check_status(uid, change.object, old, new)

    async def _check_status(self, uid: str, job: Object, old: Object, new: Object) -> None:
        before, after = (one.get("state", {}).get("phase", "") for one in (old, new))
        if after != before and after not in GOES_ON_TO[before]:
            self.wrong.append(f"went from {before or 'nothing'} to {after}")
        retries = new.get("retryCount", 0) - old.get("retryCount", 0)
        if retries not in (0, 1) or (retries and after not in ("Restarting", "Failed", *STOPPED)):
            self.wrong.append(f"{retries} retries at once, phase {after}")
        killed = new.get("version", 0) - old.get("version", 0)
        if killed not in (0, 1):
            self.wrong.append("the version jumped")
        state = state_of(Job.of(job))
        known = state_of(Job.of({**job, "status": old})).targets
        is_last = new.get("retryCount", 0) >= job["spec"]["maxRetry"]  # which replaces nothing
        for target in state.targets:
            places = {(target.task, index) for index in IndexSet.parse(target.indices)}
            if target not in known and not is_last:
                self.cleaned -= places
            self._doomed.setdefault(uid, set()).update(
                pod["metadata"]["uid"]
                for pod in await self.pods_of(uid)
                if slot_of(pod) in places and number_of(pod, JOB_RETRY_COUNT) < target.retry
            )
        if killed and after == "Restarting" and not is_last:
            self.cleaned = set()
        if before in STOPPED and after in ("Aborted", "Completed", "Terminated"):
            for pod in await self.pods_of(uid):
                if pod["status"]["phase"] not in ENDED:
                    self.wrong.append(f"{after}, but {pod['metadata']['name']} is alive")
        if before == "Restarting" and after == "Pending":
            await self._check_restarted(uid, old, new)

    async def _check_restarted(self, uid: str, old: Object, new: Object) -> None:
        """All that had to go is gone once a restart is done."""
        everything = old["state"].get("reason") == "RestartJob"
        doomed = self._doomed.pop(uid, set())
        for pod in await self.pods_of(uid):
            name, phase = pod["metadata"]["name"], pod["status"]["phase"]
            is_old = number_of(pod, JOB_VERSION) < new.get("version", 0)
            if is_old and (everything or phase not in ENDED):
                self.wrong.append(f"{name} of an old version is there after a restart")
            if pod["metadata"]["uid"] in doomed:
                self.wrong.append(f"{name} was to be restarted, and is still the same")

    async def _follow_keys(self) -> None:
        """A Job gets one pair of keys; after somebody deleted it, another."""
        async for change in self.simulation.store.watch(SECRET, "0"):
            owner = owner_of(change.object)
            if not owner or change.type is EventType.DELETED:
                continue
            keys = self._keys.setdefault(owner, set())
            keys.add(change.object["data"]["id_rsa"])
            if len(keys) > 1 + self.secrets_deleted:
                self.wrong.append("a Job got new keys without need")

    async def _follow_pods(self) -> None:
        async for change in self.simulation.store.watch(POD, "0"):
            pod = change.object
            if not owner_of(pod):
                continue
            if change.type is EventType.MODIFIED and _succeeded(pod):
                self._succeeded.add(pod["metadata"]["uid"])
            if change.type is EventType.DELETED:
                await self._follow_deletion(pod)
            elif change.type is EventType.ADDED:
                self.pods_made += 1
                self.cleaned.discard(slot_of(pod))

    async def _follow_deletion(self, pod: Object) -> None:
        """Note of a pod that is gone whether it had succeeded, and counts as long as it is not
        to be replaced."""
        try:
            job = await self.simulation.job(NAME)
        except NotFound:
            return
        is_done = pod["metadata"]["uid"] in self._succeeded
        if (
            not is_done
            or owner_of(pod) != job["metadata"]["uid"]
            or has_to_go(pod, job, ended=True)
        ):
            return
        if not self.sees_all or self._may_go(pod, job):
            self.sure = False  # the controller need not have known
        self.cleaned.add(slot_of(pod))
        self._has_cleaned = True

    async def pods_of(self, uid: str) -> list[Object]:
        """The pods of a Job that are in the store."""
        return [pod for pod in await self.simulation.pods() if owner_of(pod) == uid]

    async def _check_creation(self, kind: Kind, pod: Object) -> None:
        """What a pod needs is there before it, and it is one that is wanted."""
        if kind != POD or self.cluster.held:  # nobody could know what has changed meanwhile
            return
        name = pod["metadata"]["name"]
        job = await self.simulation.job(NAME)
        if owner_of(pod) != job["metadata"]["uid"]:
            self.wrong.append(f"{name} was made for a Job that is no more")
            return
        for missing in await self.missing(job, pod):
            self.wrong.append(f"{name} came before {missing}")
        task, index = slot_of(pod)
        replicas = replicas_of(job).get(task, 0)
        there = [one for one in await self.pods_of(owner_of(pod)) if slot_of(one)[0] == task]
        living = [one for one in there if "deletionTimestamp" not in one["metadata"]]
        if index >= replicas or len(living) >= replicas:
            self.wrong.append(f"{name} is one too many")
        if self.sure and self._is_witnessed and (task, index) in self.cleaned:
            self.wrong.append(f"{name} was made again, though it had succeeded")
        version = number_of(pod, JOB_VERSION)
        if version != job["status"].get("version", 0):
            self.wrong.append(f"{name} has version {version}, which is not recorded")
        for one in await self.pods_of(owner_of(pod)):
            if number_of(one, JOB_VERSION) < version and one["status"]["phase"] not in ENDED:
                self.wrong.append(f"{name} of a new attempt beside an old one")

    async def missing(self, job: Object, pod: Object) -> list[str]:
        """What a pod of this Job needs and has not."""
        uid, spec = job["metadata"]["uid"], job["spec"]
        needs = [(SERVICE, NAME), (NETWORK_POLICY, NAME), (CONFIG_MAP, f"{NAME}-svc")]
        needs += [(POD_GROUP, f"{NAME}-{uid}")]
        if "ssh" in spec["plugins"]:
            needs.append((SECRET, f"{NAME}-ssh"))
        for volume in pod["spec"].get("volumes", ()):
            if claim := volume.get("persistentVolumeClaim"):
                needs.append((PERSISTENT_VOLUME_CLAIM, claim["claimName"]))
        lacking = []
        for kind, name in needs:
            try:
                there = await self.simulation.store.get(kind, "default", name)
            except NotFound:
                lacking.append(f"its {kind}")
                continue
            host = f"{pod['metadata']['name']}.{NAME}"
            if kind == CONFIG_MAP and host not in str(there.get("data", "")):
                lacking.append("its line in the host list")
        return lacking

    async def _check_deletion(self, kind: Kind, namespace: str, name: str) -> None:
        """Only what is the Job's own is deleted, and of its pods only those that have to go."""
        try:
            there = await self.simulation.store.get(kind, namespace, name)
            job = await self.simulation.job(NAME)
        except NotFound:
            return
        if kind == JOB:
            if not self._is_outlived(there):
                self.wrong.append("a Job was deleted before its time")
            return
        if kind == POD and owner_of(there) == job["metadata"]["uid"]:
            if not self.cluster.held and not (_is_marked(there) or self._may_go(there, job)):
                self.wrong.append(f"pod {name} was deleted for no reason that is recorded")
        elif not owner_of(there) and "target" not in there:
            self.wrong.append(f"{kind} {name} of somebody else was deleted")

    async def _check_mark(self, kind: Kind, name: str, patch: Object) -> None:
        """A pod is marked as about to be deleted only if it has to go."""
        if kind != POD or not _is_marked(patch) or self.cluster.held:
            return
        try:
            pod = await self.simulation.store.get(POD, "default", name)
            job = await self.simulation.job(NAME)
        except NotFound:
            return
        ours = owner_of(pod) == job["metadata"]["uid"]
        if ours and not (_is_marked(pod) or self._may_go(pod, job)):
            self.wrong.append(f"pod {name} was marked for no reason that is recorded")

    def _is_outlived(self, job: Object) -> bool:
        ttl, state = job["spec"].get("ttlSecondsAfterFinished"), job["status"]["state"]
        if ttl is None or state["phase"] not in FINAL:
            return False
        ended = seconds_of(state["lastTransitionTime"]) or 0.0
        return self.simulation.clock.now() >= ended + ttl


def has_to_go(pod: Object, job: Object, *, ended: bool) -> bool:
    """Whether the recorded status says that this pod of the Job has to go (docs/lifecycle.md)."""
    state = state_of(Job.of(job))
    (task, index), phase = slot_of(pod), job["status"]["state"]["phase"]
    if index >= replicas_of(job).get(task, 0):
        return True
    if number_of(pod, JOB_VERSION) < job["status"].get("version", 0):
        return not (state.keep and ended)
    targeted = any(
        target.task == task
        and index in IndexSet.parse(target.indices)
        and number_of(pod, JOB_RETRY_COUNT) < target.retry
        for target in state.targets
    )
    return targeted or (phase not in ACTIVE and not ended)


def replicas_of(job: Object) -> dict[str, int]:
    """How many pods each task of a Job wants."""
    return {task["name"]: task["replicas"] for task in job["spec"]["tasks"]}


def owner_of(obj: Object) -> str:
    """The UID of an object's owner, empty if it has none."""
    owners: Any = obj["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))


def slot_of(pod: Object) -> Slot:
    """A pod's place in its Job."""
    annotations = pod["metadata"]["annotations"]
    return annotations[TASK_SPEC], int(annotations[TASK_INDEX])


def number_of(pod: Object, annotation: str) -> int:
    """The number in an annotation, 0 if it is not there."""
    return int(pod["metadata"]["annotations"].get(annotation, 0))


def _is_marked(pod: Object) -> bool:
    return OUT_OF_SYNC in (pod.get("metadata", {}).get("annotations") or {})


def _succeeded(pod: Object) -> bool:
    """Whether a pod has done its work, before anybody asked for its deletion."""
    return pod["status"]["phase"] == "Succeeded" and "deletionTimestamp" not in pod["metadata"]
