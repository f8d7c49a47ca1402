"""What becomes of decisions about gangs: statuses of PodGroups, gates lifted, pods deleted, Events.

What is written comes back into the books at once. All raise ClusterError, except where something is
gone by now: the watch tells.
"""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from vcjob.api.kinds import POD, POD_GROUP
from vcjob.api.names import OUT_OF_SYNC
from vcjob.api.types import Key, Object
from vcjob.controller.cluster import Cluster, ClusterError, Conflict, Invalid, NotFound
from vcjob.controller.parallel import for_each
from vcjob.controller.recorder import record_event
from vcjob.core.draft import Told
from vcjob.core.scheduling.booked import BookedGang, BookedPod
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.core.scheduling.undone import Undone

AT_ONCE = 16
"""How many requests are under way at the same time."""


class GangWriter:
    """Writes to a cluster what was decided.

    Args:
        cluster: where everything is written.
        books: where what was written is entered.
        undone: remembers what was decided: somebody else may not leave it so.
    """

    def __init__(self, cluster: Cluster, books: ClusterBooks, undone: Undone) -> None:
        self._cluster = cluster
        self._books = books
        self._undone = undone
        self._status_apart = False

    async def write_status(self, key: Key, uid: str, status: Object) -> None:
        """Write a PodGroup's status, whether or not it is a subresource in this cluster."""
        group = await self._patch_group(key, uid, status)
        stored = group.get("status") or {}
        if any(stored.get(name) != status[name] for name in status.keys() - {"conditions"}):
            self._status_apart = True
            group = await self._patch_group(key, uid, status)
        gang = self._books.ledger.gangs.get(key)
        if gang and gang.uid == uid:  # else it is gone by now
            self._books.enter_group(group)
            self._undone.decided(uid, status["phase"])

    async def lift_gates(self, gang: BookedGang, pods: Iterable[BookedPod]) -> None:
        """Take our gate off pods of a gang; those that are gone or changed are left."""
        # Ours is the only one: pods with other gates are left to those who set these.
        without = {"spec": {"schedulingGates": None}}

        async def lift(pod: BookedPod) -> None:
            try:
                patched = await self._cluster.patch(POD, *pod.key, without, uid=pod.uid)
            except (NotFound, Conflict, Invalid):
                return
            if pod.uid in gang.pods:  # else the watch has told meanwhile that it is gone
                self._books.enter_pod(patched)

        await _for_all(pods, lift)

    async def delete(self, pods: Iterable[BookedPod], deleted: Callable[[str], None]) -> None:
        """Delete pods with the mark that it is done on purpose: no policy is to answer it.

        ``deleted`` is called with the UID of each that is deleted, or gone.
        """
        mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}

        async def delete(pod: BookedPod) -> None:
            try:
                await self._cluster.patch(POD, *pod.key, mark, uid=pod.uid)
                await self._cluster.delete(POD, *pod.key, uid=pod.uid)
            except (NotFound, Conflict):
                pass
            deleted(pod.uid)

        await _for_all(pods, delete)

    async def tell(self, group: Object, told: Told, now: float) -> None:
        """Record an Event on a PodGroup."""
        await record_event(self._cluster, group, told, now, POD_GROUP)

    async def _patch_group(self, key: Key, uid: str, status: Object) -> Object:
        subresource = "status" if self._status_apart else ""
        return await self._cluster.patch(
            POD_GROUP, *key, {"status": status}, subresource=subresource, uid=uid
        )


async def _for_all(
    pods: Iterable[BookedPod], do: Callable[[BookedPod], Coroutine[Any, Any, None]]
) -> None:
    """Do something with each pod; a fault is raised before what the cluster refuses."""
    failures = await for_each(list(pods), do, at_once=AT_ONCE)
    failures.sort(key=lambda error: isinstance(error, ClusterError))
    for error in failures:
        raise error
