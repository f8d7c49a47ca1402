"""Who admits gangs on a cluster: Volcano's scheduler where it works, else we.

Volcano's scheduler holds the Lease ``volcano`` in its namespace while it works; to read it is the
least right by which it can be noticed. What was chosen is looked at again while we work: we
give way as soon as Volcano's scheduler is there, and step in only when it has been away for longer
than an upgrade of it takes.

Pods that wait for a scheduler that is not the one chosen would wait for ever: they are deleted, and
the controller makes them anew. A pod that has a node is never touched.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence

from vcjob.api.defaults import DEFAULT_SCHEDULER as VOLCANO_SCHEDULER
from vcjob.api.kinds import JOB, POD
from vcjob.api.names import JOB_NAME, OUT_OF_SYNC
from vcjob.api.types import Object
from vcjob.controller.backing_off import pause_after
from vcjob.controller.cluster import Cluster, ClusterError, Conflict, Forbidden, NotFound
from vcjob.controller.parallel import for_each
from vcjob.controller.readiness import Readiness
from vcjob.core.scheduling.gating import GATE, GangScheduling
from vcjob.kubernetes.beside_volcano import read_lease
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.installing.installation import VOLCANO_NAMESPACE
from vcjob.kubernetes.lease_sightings import Holding, Sightings

SCHEDULER_LEASE = "volcano"
AUTO = "auto"

_LOOK_SECONDS = 2.0
_LOOK_AGAIN_SECONDS = 30.0
_AWAY_SECONDS = 300.0
_AGAIN_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 60.0
_AT_ONCE = 8
_GONE = (Holding.FREE, Holding.ABANDONED)

_log = logging.getLogger(__name__)


class SchedulerChoice:
    """Finds out who admits gangs.

    Args:
        cluster: where Volcano's Lease is.
        wanted: "volcano", "builtin", or "auto" to find out.
        readiness: is told what was chosen, and what keeps us from choosing.
        namespace: Volcano's.
        look: how often (s) the Lease is looked at until it is known whether it is renewed.
        look_again: how often (s) after that.
        away: how long (s) Volcano's scheduler must be away before we step in.
    """

    def __init__(
        self,
        cluster: Cluster,
        wanted: str,
        readiness: Readiness,
        *,
        namespace: str = VOLCANO_NAMESPACE,
        look: float = _LOOK_SECONDS,
        look_again: float = _LOOK_AGAIN_SECONDS,
        away: float = _AWAY_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._readiness = readiness
        self._namespace = namespace
        self._shown = f"{namespace}/{SCHEDULER_LEASE}"
        self._look_seconds = look
        self._look_again_seconds = look_again
        self._away_seconds = away
        self._sightings = Sightings()
        self.chosen: GangScheduling | None = None
        self._told = ""

    async def choose(self) -> GangScheduling:
        """Who it is; looks for as long as Volcano's Lease lasts if somebody is named in it."""
        if self._wanted != AUTO:
            return self._tell(GangScheduling(self._wanted), "as --scheduler says")
        if self.chosen is not None:  # what was seen while we worked
            return self.chosen
        while True:
            holding = await self._look()
            if holding is Holding.HELD:
                holder = self._sightings.lease.holder_identity
                return self._tell(
                    GangScheduling.VOLCANO, f"{holder} renews the Lease {self._shown}"
                )
            if holding is Holding.FREE:
                return self._tell(GangScheduling.BUILTIN, f"nobody holds the Lease {self._shown}")
            if holding is Holding.ABANDONED:
                return self._tell(GangScheduling.BUILTIN, f"nobody renews the Lease {self._shown}")
            if holding is Holding.UNCERTAIN:
                said = self._sightings.lease
                self._readiness.fail(
                    Condition.SCHEDULER,
                    f"{said.holder_identity} is named as holder of the Lease {self._shown}; "
                    f"looking for {said.seconds:.0f} s whether it still renews it",
                )
            await asyncio.sleep(self._look_seconds)

    async def changed(self) -> None:
        """Return when it is another; ``choose`` then tells who."""
        if self._wanted != AUTO:
            await self._say_what_does_not_fit()
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while True:
            await asyncio.sleep(self._look_again_seconds)
            holding = await self._look()
            if holding is Holding.HELD:
                seen = loop.time()
                holder = self._sightings.lease.holder_identity
                before = self.chosen
                self._tell(GangScheduling.VOLCANO, f"{holder} renews the Lease {self._shown}")
                if before is GangScheduling.BUILTIN:
                    return
            away, lease = loop.time() - seen, f"the Lease {self._shown}"
            if self.chosen is not GangScheduling.VOLCANO or holding not in _GONE:
                continue
            if away >= self._away_seconds:
                self._tell(GangScheduling.BUILTIN, f"nobody renewed {lease} for {away:.0f} s")
                return
            then = f"after {self._away_seconds:.0f} s the operator does"
            told = f"nobody renews {lease} any more; {then}"
            self._tell(GangScheduling.VOLCANO, told, warn=True)

    async def _say_what_does_not_fit(self) -> None:
        """Look for ever whether who was named is who works, which nothing follows from."""
        while True:
            holding = await self._look()
            if holding is not None:
                doubt = self._doubt(holding)
                self._readiness.meet(Condition.SCHEDULER, self._told + doubt, warn=bool(doubt))
            certain = holding is not Holding.UNCERTAIN
            await asyncio.sleep(self._look_again_seconds if certain else self._look_seconds)

    def _doubt(self, holding: Holding) -> str:
        holder = self._sightings.lease.holder_identity
        if self._wanted == GangScheduling.BUILTIN and holding is Holding.HELD:
            return (
                f", but {holder} renews the Lease {self._shown}: two decide about the same gangs. "
                "Stop Volcano's scheduler, or say --scheduler auto or volcano"
            )
        if self._wanted == GangScheduling.VOLCANO and holding in _GONE:
            return (
                f", but nobody renews the Lease {self._shown}: no Job starts before Volcano's "
                "scheduler works. Without it say --scheduler builtin, to vcjob manifests too: its "
                "roles then have the rights for that. With leader election turned off Volcano's "
                "scheduler cannot be seen"
            )
        return ""

    async def _look(self) -> Holding | None:
        """What is known of the Lease; None if it cannot be read."""
        try:
            lease = await read_lease(self._cluster, self._namespace, SCHEDULER_LEASE)
        except Forbidden as error:
            if self._wanted != AUTO:
                return None  # it is not needed
            self._readiness.fail(
                Condition.SCHEDULER,
                "whether Volcano's scheduler works cannot be told: grant the verb get on leases of "
                f'namespace "{self._namespace}", or say --scheduler volcano or builtin ({error})',
            )
            return None
        except ClusterError as error:
            _log.warning("the Lease %s cannot be read: %s", self._shown, error)
            return None
        if self._wanted == AUTO and self._told:
            self._readiness.meet(Condition.SCHEDULER, self._told)
        return self._sightings.look(lease, asyncio.get_running_loop().time())

    def _tell(self, chosen: GangScheduling, why: str, *, warn: bool = False) -> GangScheduling:
        who = {
            GangScheduling.VOLCANO: "Volcano's scheduler admits gangs",
            GangScheduling.BUILTIN: "the operator admits gangs, for Kubernetes' own scheduler",
        }[chosen]
        self.chosen = chosen
        self._told = f"{who}: {why}"
        self._readiness.meet(Condition.SCHEDULER, self._told, warn=warn)
        return chosen


async def remake_all_waiting(
    cluster: KubernetesCluster,
    chosen: GangScheduling,
    namespaces: Sequence[str] = (),
    *,
    again: float = _AGAIN_SECONDS,
) -> None:
    """Have ``remake_waiting`` succeed twice, ``again`` (s) apart; what fails is tried again.

    Pods that were being made when the choice changed may come after the first time.
    """
    failures, told, jitter = 0, "", random.Random()
    for _ in range(2):
        while True:
            try:
                await remake_waiting(cluster, chosen, namespaces)
                break
            except ClusterError as error:
                if str(error) != told:  # else it is as it was
                    _log.warning(
                        "pods that wait for the other scheduler are still there: %s", error
                    )
                failures, told = failures + 1, str(error)
                longest = _LONGEST_PAUSE_SECONDS
                await asyncio.sleep(pause_after(failures, jitter, first=again, longest=longest))
        await asyncio.sleep(again)


async def remake_waiting(
    cluster: KubernetesCluster, chosen: GangScheduling, namespaces: Sequence[str] = ()
) -> int:
    """Delete pods of Jobs that wait for a scheduler that was not chosen; how many there were.

    They bear the mark that it is done on purpose: no policy answers it, and the controller makes
    them anew. Raises ClusterError.
    """
    found: list[Object] = []
    closed: Forbidden | None = None
    for namespace in namespaces or (None,):
        try:
            listed = await cluster.list(POD, namespace, selector=JOB_NAME)
        except Forbidden as error:  # the others do not wait for it
            closed = error
            continue
        found += [pod for pod in listed.items if _waits_for_another(pod, chosen)]

    async def delete(pod: Object) -> None:
        about = pod["metadata"]
        place = (about["namespace"], about["name"])
        try:
            mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
            marked = await cluster.patch(POD, *place, mark, uid=about["uid"])
            if _waits_for_another(marked, chosen):
                await cluster.delete(POD, *place, uid=about["uid"])
        except (NotFound, Conflict):
            pass  # it is gone, or another

    if found:
        _log.info("%d pods wait for the other scheduler: they are made anew", len(found))
    for failure in await for_each(found, delete, at_once=_AT_ONCE):
        raise failure
    if closed:
        raise closed
    return len(found)


def _waits_for_another(pod: Object, chosen: GangScheduling) -> bool:
    spec = pod["spec"]
    if spec.get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    if not any(owner.get("kind") == JOB.kind and owner.get("apiVersion") == JOB.api_version
               for owner in pod["metadata"].get("ownerReferences") or ()):  # fmt: skip
        return False
    return _IS_FOR_ANOTHER[chosen](spec)


def _is_gated(spec: Object) -> bool:
    return any(gate.get("name") == GATE for gate in spec.get("schedulingGates") or ())


_IS_FOR_ANOTHER: dict[GangScheduling, Callable[[Object], bool]] = {
    GangScheduling.VOLCANO: _is_gated,
    GangScheduling.BUILTIN: lambda spec: spec.get("schedulerName") == VOLCANO_SCHEDULER,
}
