"""What is promised of each write to pods and to what they need, looked at as it is made.

What a write owes to a decision is looked up in the status that is stored at that moment, since
intent comes before effect.
"""

from beyond_minimum import minimum_of
from faults import Faulty
from owned import (
    ENDED,
    FINAL,
    Slot,
    has_to_go,
    is_leaving,
    is_marked,
    owner_of,
    replicas_of,
    slot_of,
    version_of,
)
from witness import Witness

from vcjob.api.kinds import (
    COMMAND,
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
from vcjob.api.types import Job, Object
from vcjob.controller.cluster import EventType, NotFound
from vcjob.core.state import state_of
from vcjob.core.times import seconds_of


class Writes:
    """Looks at what is written through ``cluster``; ``wrong`` gets what was broken.

    ``secrets_deleted`` tells how often somebody else deleted a Job's keys.
    """

    def __init__(self, witness: Witness, cluster: Faulty, wrong: list[str]) -> None:
        self._witness, self._cluster, self._wrong = witness, cluster, wrong
        self._store = witness.simulation.store
        self.secrets_deleted = 0
        self._keys: dict[str, set[str]] = {}
        cluster.before_create.append(self._check_creation)
        cluster.before_delete.append(self._check_deletion)
        cluster.before_patch.append(self._check_mark)

    async def follow_keys(self) -> None:
        """A Job gets one pair of keys; after somebody deleted it, another."""
        async for change in self._store.watch(SECRET, "0"):
            owner = owner_of(change.object)
            if not owner or change.type is EventType.DELETED:
                continue
            keys = self._keys.setdefault(owner, set())
            keys.add(change.object["data"]["id_rsa"])
            if len(keys) > 1 + self.secrets_deleted + self._cluster.replaced[SECRET]:
                self._wrong.append("a Job got new keys without need")

    async def _check_creation(self, kind: Kind, pod: Object) -> None:
        """What a pod needs is there before it, and it is one that is wanted."""
        if kind != POD or self._cluster.held:  # nobody could know what has changed meanwhile
            return
        name, job = pod["metadata"]["name"], await self._witness.job()
        if not job or owner_of(pod) != job["metadata"]["uid"]:
            self._wrong.append(f"{name} was made for a Job that is no more")
            return
        for missing in await self.missing(job, pod):
            self._wrong.append(f"{name} came before {missing}")
        task, index = slot_of(pod)
        replicas = replicas_of(job).get(task, 0)
        pods = await self._witness.pods_of(owner_of(pod))
        living = [one for one in pods if slot_of(one)[0] == task and not is_leaving(one)]
        if index >= replicas or len(living) >= replicas:
            self._wrong.append(f"{name} is one too many")
        if self._witness.knows_successes and (task, index) in self._witness.cleaned:
            self._wrong.append(f"{name} was made again, though it had succeeded")
        if idle := await self._idle_minimum(job, pod):
            self._wrong.append(f"{name} came before {idle} of the minimum ran")
        version = version_of(pod)
        if version != job["status"].get("version", 0):
            self._wrong.append(f"{name} has version {version}, which is not recorded")
        for one in pods:
            if version_of(one) < version and one["status"]["phase"] not in ENDED:
                self._wrong.append(f"{name} of a new attempt beside an old one")

    async def _idle_minimum(self, job: Object, pod: Object) -> set[Slot]:
        """Places of the minimum that ``pod`` had to wait for: no pod there runs or has ended."""
        minimum = minimum_of(job)
        if minimum is None or slot_of(pod) in minimum or not self._witness.knows_successes:
            return set()
        begun = {
            slot_of(one)
            for one in await self._witness.pods_of(owner_of(pod))
            if one["status"]["phase"] in ("Running", *ENDED)
            and not (is_leaving(one) or has_to_go(one, job, ended=one["status"]["phase"] in ENDED))
        }
        return minimum - begun - self._witness.cleaned

    async def missing(self, job: Object, pod: Object) -> list[str]:
        """What a pod of this Job needs and has not."""
        (name, uid), spec = (job["metadata"][key] for key in ("name", "uid")), job["spec"]
        needs = [(SERVICE, name), (NETWORK_POLICY, name), (CONFIG_MAP, f"{name}-svc")]
        needs += [(POD_GROUP, f"{name}-{uid}")]
        if "ssh" in spec["plugins"]:
            needs.append((SECRET, f"{name}-ssh"))
        for volume in pod["spec"].get("volumes", ()):
            if claim := volume.get("persistentVolumeClaim"):
                needs.append((PERSISTENT_VOLUME_CLAIM, claim["claimName"]))
        lacking = []
        for kind, needed in needs:
            try:
                there = await self._store.get(kind, "default", needed)
            except NotFound:
                lacking.append(f"its {kind}")
                continue
            host = f"{pod['metadata']['name']}.{name}"
            if kind == CONFIG_MAP and host not in str(there.get("data", "")):
                lacking.append("its line in the host list")
        return lacking

    async def _check_deletion(self, kind: Kind, namespace: str, name: str) -> None:
        """Only what is the Job's own is deleted, and of its pods only those that have to go."""
        try:
            there = await self._store.get(kind, namespace, name)
        except NotFound:
            return
        job = await self._witness.job()
        if not job:
            return
        if kind == JOB:
            if not self._is_outlived(there):
                self._wrong.append("a Job was deleted before its time")
            return
        if kind == COMMAND and there.get("target", {}).get("uid") == job["metadata"]["uid"]:
            if there["metadata"]["uid"] not in state_of(Job.of(job)).commands:
                self._wrong.append(f"Command {name} was deleted before it was recorded as obeyed")
            return
        if kind == POD and owner_of(there) == job["metadata"]["uid"]:
            may_go = is_marked(there) or self._witness.may_go(there, job)
            if not (self._cluster.held or may_go):
                self._wrong.append(f"pod {name} was deleted for no reason that is recorded")
        elif not owner_of(there) and "target" not in there:
            self._wrong.append(f"{kind} {name} of somebody else was deleted")

    async def _check_mark(self, kind: Kind, name: str, patch: Object) -> None:
        """A pod is marked as about to be deleted only if it has to go."""
        if kind != POD or not is_marked(patch) or self._cluster.held:
            return
        try:
            pod = await self._store.get(POD, "default", name)
        except NotFound:
            return
        job = await self._witness.job()
        ours = job and owner_of(pod) == job["metadata"]["uid"]
        if job and ours and not (is_marked(pod) or self._witness.may_go(pod, job)):
            self._wrong.append(f"pod {name} was marked for no reason that is recorded")

    def _is_outlived(self, job: Object) -> bool:
        ttl, state = job["spec"].get("ttlSecondsAfterFinished"), job["status"]["state"]
        if ttl is None or state["phase"] not in FINAL:
            return False
        ended = seconds_of(state["lastTransitionTime"]) or 0.0
        return self._witness.simulation.clock.now() >= ended + ttl
