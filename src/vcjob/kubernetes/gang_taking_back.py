"""Gangs that were admitted and lost their room: they wait anew, without the pods let go before.

One that nothing was let go of just waits (``let_wait_anew``). Of one whose pods find no nodes the
pods are deleted, as gates cannot be put back; the controller makes them anew.
"""

from vcjob.api.types import Key
from vcjob.core.draft import Told
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.core.scheduling.group_status import pending
from vcjob.core.scheduling.places import Wait
from vcjob.core.scheduling.setbacks import (
    TAKEN_BACK,
    Setbacks,
    is_clearing,
    is_stuck,
    is_taken_back,
    pods_to_delete,
    taken_back,
    taken_back_before_start,
)
from vcjob.kubernetes.gang_attempts import Attempts
from vcjob.kubernetes.gang_writing import GangWriter


class TakingBack:
    """Takes gangs back.

    Args:
        books: what is known of gangs.
        writer: how it is written.
        attempts: by which everything is done.
        setbacks: which gangs are to be taken back.
    """

    def __init__(
        self, books: ClusterBooks, writer: GangWriter, attempts: Attempts, setbacks: Setbacks
    ) -> None:
        self._books = books
        self._writer = writer
        self._attempts = attempts
        self._setbacks = setbacks
        self._clearing: dict[Key, float] = {}  # and since when
        self._deleted: set[str] = set()

    def under_way_until(self, now: float) -> float | None:
        """Until when pods of gangs that were taken back are waited for; None if for none.

        A pod that nobody can delete must not keep all other gangs from their turn.
        """
        ends = [since + self._setbacks.grace for since in self._clearing.values()]
        return min((end for end in ends if end > now), default=None)

    def note(self, key: Key, gang: BookedGang, now: float) -> None:
        """A gang has changed: somebody before us may have begun to take it back."""
        if is_taken_back(gang) and is_clearing(gang):
            self._clearing.setdefault(key, now)

    async def go_on(self, now: float) -> None:
        """Do what is due."""
        await self._clear(now)
        await self._take_back(now)

    async def let_wait_anew(self, key: Key, wait: Wait, now: float) -> None:
        """Take back a gang that was admitted and does not fit any more; no pod has to go."""
        gang = self._books.ledger.gangs.get(key)
        if gang is None or gang.group is None or gang.phase != "Inqueue":
            return
        group, name = gang.group, gang.name
        await self._writer.write_status(key, gang.uid, pending(wait, now, group))
        event = Told("Warning", TAKEN_BACK, taken_back_before_start(name, wait))
        await self._writer.tell(group, event, now)

    async def _take_back(self, now: float) -> None:
        """Take back the least urgent of the gangs whose time is over, one at a time.

        The room of one may be all that the others lack. Where that is refused it is the next one's
        turn.
        """
        if self.under_way_until(now) is not None:
            return
        gangs = self._books.ledger.gangs
        due = self._setbacks.due(now)
        for key in due:
            if key not in gangs or not is_stuck(gangs[key]):
                self._setbacks.note(key, gangs.get(key), now)
        due = [key for key in due if key in gangs and is_stuck(gangs[key])]
        for key in reversed(self._books.by_urgency(due)):
            if self.under_way_until(now) is not None:
                return
            gang = gangs.get(key)
            if gang is not None and is_stuck(gang):  # else it has changed while we wrote
                await self._attempts.make(key, "take back", self._take_back_one, key, gang, now)

    async def _take_back_one(self, key: Key, gang: BookedGang, now: float) -> None:
        """Write down what is done, then do it: whoever comes after a crash goes on from there."""
        assert gang.group is not None
        message = taken_back(gang.name, gang, self._setbacks.grace)
        uid, wait = gang.uid, Wait(TAKEN_BACK, message)
        await self._writer.write_status(key, uid, pending(wait, now))
        self._setbacks.take_back(key, uid, now)
        self._clearing[key] = now
        await self._writer.tell(gang.group, Told("Warning", TAKEN_BACK, message), now)
        await self._clear(now)

    async def _clear(self, now: float) -> None:
        """Delete the pods of gangs that were taken back, until all are gone."""
        for key in sorted(self._clearing):
            gang = self._books.ledger.gangs.get(key)
            if gang is None or not is_clearing(gang):
                del self._clearing[key]
                self._setbacks.quiet_since(now)
                self._books.room_grew = True
                continue
            pods = [pod for pod in pods_to_delete(gang) if pod.uid not in self._deleted]
            await self._attempts.make(key, "delete", self._writer.delete, pods, self._deleted.add)
        if not self._clearing:
            self._deleted.clear()
