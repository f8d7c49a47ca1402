"""Somebody who sees all pods come and go, and knows who else can have seen it."""

from faults import Faulty
from owned import ENDED, Slot, has_to_go, is_leaving, owner_of, slot_of
from simulation import Simulation

from vcjob.api.kinds import POD
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType, NotFound
from vcjob.controller.controller import Controller


class Witness:
    """Watches the pods of the Jobs of one name.

    ``cleaned`` are places of pods that succeeded and are gone, ``sure`` is whether the controller
    can have seen all of these succeed. ``pods_made`` counts the pods that have come.
    """

    def __init__(self, simulation: Simulation, cluster: Faulty, name: str) -> None:
        self.simulation, self.cluster, self._name = simulation, cluster, name
        self.cleaned: set[Slot] = set()
        self.sure = True
        self.pods_made = 0
        self._teller: Controller | None = None
        self._has_cleaned = False
        self._ended: set[str] = set()
        self._succeeded: set[str] = set()

    async def job(self) -> Object | None:
        """The Job of today, if there is one."""
        try:
            return await self.simulation.job(self._name)
        except NotFound:
            return None

    async def pods_of(self, uid: str) -> list[Object]:
        """The pods of a Job that are in the store."""
        return [pod for pod in await self.simulation.pods() if owner_of(pod) == uid]

    @property
    def sees_all(self) -> bool:
        """Whether the controller is told of everything at once."""
        return self.simulation.controller is not None and not self.cluster.held

    @property
    def knows_successes(self) -> bool:
        """Whether who decides now knows of all that is ``cleaned``.

        A controller that saw a pod succeed and died before it said so has told nobody.
        """
        told = not self._has_cleaned or self.simulation.controller is self._teller
        return self.sure and told

    async def rest(self) -> None:
        """Take note of what everybody knows by now."""
        self.sure = self.knows_successes
        self._teller, self._has_cleaned = self.simulation.controller, False
        if self.sees_all:
            pods = await self.simulation.pods()
            self._ended |= {p["metadata"]["uid"] for p in pods if p["status"]["phase"] in ENDED}

    def may_go(self, pod: Object, job: Object) -> bool:
        """Whether a pod has to go.

        One that has ended since the controller was last told of everything may go as one that runs.
        """
        return has_to_go(pod, job, ended=pod["metadata"]["uid"] in self._ended)

    async def follow(self) -> None:
        """Look at every pod from now on."""
        async for change in self.simulation.store.watch(POD, "0"):
            pod = change.object
            if not owner_of(pod):
                continue
            has_succeeded = pod["status"]["phase"] == "Succeeded" and not is_leaving(pod)
            if change.type is EventType.MODIFIED and has_succeeded:
                self._succeeded.add(pod["metadata"]["uid"])
            if change.type is EventType.DELETED:
                await self._saw_go(pod)
            elif change.type is EventType.ADDED:
                self.pods_made += 1
                self.cleaned.discard(slot_of(pod))

    async def _saw_go(self, pod: Object) -> None:
        """A pod that had succeeded counts as long as it is not to be replaced."""
        job = await self.job()
        if not job or owner_of(pod) != job["metadata"]["uid"]:
            return
        if pod["metadata"]["uid"] not in self._succeeded or has_to_go(pod, job, ended=True):
            return
        if not self.sees_all or self.may_go(pod, job):
            self.sure = False  # the controller need not have known
        self.cleaned.add(slot_of(pod))
        self._has_cleaned = True
