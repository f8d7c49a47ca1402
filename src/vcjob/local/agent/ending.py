"""The end of a pod whose containers still run: in their order, within a grace that may shrink."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from vcjob.local.agent.container import ContainerLife
from vcjob.local.agent.surroundings import Tell
from vcjob.local.node.client import NodeGone

_SLOW_SECONDS = 1.0
"""A pod that takes longer to end is told of."""


class Ending:
    """Ends the containers of a pod.

    Args:
        inits: init containers and sidecars, in the order of their start.
        mains: the others.
        tell: tells an Event on the pod.
        in_background: lets something be done that nobody waits for.
    """

    def __init__(
        self,
        inits: Sequence[ContainerLife],
        mains: Sequence[ContainerLife],
        tell: Tell,
        in_background: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._inits = inits
        self._mains = mains
        self._tell = tell
        self._in_background = in_background
        self._deadline: float | None = None

    async def run(self, grace: float) -> None:
        """End what runs within ``grace`` seconds: the main containers, then those beside them."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + grace
        slow = loop.call_later(_SLOW_SECONDS, self._tell_of_grace)
        try:
            await self._end_all(self._mains)
            for container in reversed(self._inits):
                await self._end_all([container])
        finally:
            slow.cancel()

    def shorten(self, grace: float) -> None:
        """A pod that is ending already is to end within ``grace`` seconds: sooner, if at all."""
        loop = asyncio.get_running_loop()
        if self._deadline is not None and loop.time() + grace < self._deadline:
            self._deadline = loop.time() + grace
            loop.call_at(self._deadline, lambda: self._in_background(self._kill_all()))

    async def _end_all(self, containers: Sequence[ContainerLife]) -> None:
        running = [c for c in containers if c.is_running]
        if len(running) == 1:
            await self._end_one(running[0])
        elif running:
            async with asyncio.TaskGroup() as tasks:
                for container in running:
                    tasks.create_task(self._end_one(container))

    async def _end_one(self, container: ContainerLife) -> None:
        await container.end(max(self._left(), 0.0))

    async def _kill_all(self) -> None:
        with contextlib.suppress(NodeGone):  # then nothing is left to be killed
            for container in (*self._mains, *self._inits):
                await container.kill()

    def _tell_of_grace(self) -> None:
        """Say how long a pod that does not end at once has left."""
        left = self._left()
        if left > _SLOW_SECONDS:
            message = f"terminating: killed in {left:.0f} s unless it ends before"
            self._in_background(self._tell("Normal", "Killing", message))

    def _left(self) -> float:
        assert self._deadline is not None, "it is ending"
        return self._deadline - asyncio.get_running_loop().time()
