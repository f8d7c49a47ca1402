"""What is left of a cluster's nodes and queues beside all that gangs take and hold."""

from collections.abc import Callable
from functools import cached_property

from vcjob.core.scheduling.fitting import Nodes
from vcjob.core.scheduling.gangs import QueueRoom
from vcjob.core.scheduling.shapes import PodShape


class Leftover:
    """Taken from by pods that nothing is held for; reckoned only when somebody takes.

    Args:
        nodes: tells what is left of the nodes.
        queues: tells what is left of the queues.
    """

    def __init__(self, nodes: Callable[[], Nodes], queues: Callable[[], QueueRoom]) -> None:
        self._reckon_nodes = nodes
        self._reckon_queues = queues

    def take(self, queue: str, shape: PodShape, count: int) -> int:
        """Take room for up to ``count`` pods of a shape and a queue; returns for how many."""
        amounts = shape.shown()
        most = self._queues.most(queue, amounts, count)
        if most <= 0:
            return 0
        placed = sum(self._nodes.place([(shape, most)]).get(shape, {}).values())
        self._queues.hold(queue, amounts, placed)
        return placed

    @cached_property
    def _nodes(self) -> Nodes:
        return self._reckon_nodes()

    @cached_property
    def _queues(self) -> QueueRoom:
        return self._reckon_queues()
