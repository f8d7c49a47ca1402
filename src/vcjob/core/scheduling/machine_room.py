"""What one machine and its queues have left for pods that no room is held for.

Those are pods beyond a gang's minimum, and pods of no gang: they get what no gang that was admitted
has a claim to, and what is left of their queue.
"""

from collections.abc import Collection, Mapping
from fractions import Fraction

from vcjob.core.scheduling.amounts import Amounts, add, beyond, less, listed
from vcjob.core.scheduling.gangs import QueueLimits, QueueRoom, ancestry
from vcjob.core.scheduling.places import shortage


class MachineRoom:
    """Taken from by pod after pod.

    Args:
        capacity: what the machine has; of a resource that is not named it has none.
        queues: all there are, by name.
        held: what gangs hold, and pods of none take, by queue.
        in_order: queues of which nothing may start before what waits in them.
    """

    def __init__(
        self,
        capacity: Amounts,
        queues: Mapping[str, QueueLimits],
        held: Mapping[str, Amounts],
        in_order: Collection[str] = (),
    ) -> None:
        self._capacity = capacity
        self._queues = queues
        self._in_order = in_order
        self._room = QueueRoom(queues, held)
        self._held: dict[str, Fraction] = {}
        for amounts in held.values():
            add(self._held, amounts)

    def lacks(self, queue: str | None, needs: Amounts) -> str:
        """What is missing for one pod, as a sentence; empty if it fits.

        ``queue`` is None for a pod of no gang.
        """
        return self._queue_lacks(queue, needs) or shortage(needs, self._capacity, self._held)

    def take(self, queue: str | None, needs: Amounts) -> None:
        """A pod has started."""
        add(self._held, needs)
        if queue is not None:
            self._room.hold(queue, needs)

    def _queue_lacks(self, queue: str | None, needs: Amounts) -> str:
        if queue is None:
            return ""
        if queue not in self._queues:
            return f'there is no queue "{queue}": it is beyond the minimum, and waits for it'
        if queue in self._in_order:
            return f'queue "{queue}" keeps its order: what waits in it goes first'
        for one in ancestry(queue, self._queues):
            left = less(self._queues[one].capability, self._room.held(one))
            if short := beyond(needs, left, missing_is_none=False):
                asks = f"it needs {listed(needs, short)}"
                return f'{asks}; queue "{one}" has {listed(left, short)} left'
        return ""
