"""The controllers of one operator: one for each namespace that it looks after, or one for all.

A controller decides nothing on half the truth. With one each, a namespace that is closed to us (it
was deleted, and with it our rights there) keeps no Job of the others waiting.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from vcjob.api.types import Job
from vcjob.controller.controller import Controller
from vcjob.controller.garbage import rarely_collected


class Controllers:
    """Controllers by namespace; that of all namespaces has the empty name."""

    def __init__(self, by_namespace: Mapping[str, Controller]) -> None:
        self._by_namespace = dict(by_namespace)

    def __iter__(self) -> Iterator[tuple[str, Controller]]:
        return iter(self._by_namespace.items())

    async def run(self) -> None:
        """Work until cancelled."""
        # Around all of them, as they end in any order, and each puts back what it found.
        with rarely_collected():
            async with asyncio.TaskGroup() as tasks:
                for controller in self._by_namespace.values():
                    tasks.create_task(controller.run())

    def jobs(self) -> Iterator[Job]:
        """All Jobs there are, as far as they can be read."""
        for _, controller in self:
            yield from controller.jobs()

    def queue_counts(self) -> Iterable[tuple[str, Mapping[str, int]]]:
        """What the controller of all namespaces counts of Queues; one of some counts nothing."""
        for _, controller in self:
            yield from controller.queue_counts()

    @property
    def waiting(self) -> int:
        """How many Jobs wait to be looked at, or are."""
        return sum(len(controller.queue) for _, controller in self)

    @property
    def longest_wait(self) -> float:
        """How long (s) the Job has waited that waits longest to be looked at; 0 if none waits."""
        return max((controller.queue.longest_wait for _, controller in self), default=0.0)
