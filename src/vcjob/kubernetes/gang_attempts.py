"""What is done about gangs one by one: what fails is tried again, ever more seldom."""

import logging
import random
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass

from vcjob.api.types import Key
from vcjob.controller.backing_off import pause_after
from vcjob.controller.clock import Clock
from vcjob.controller.cluster import ClusterError, Conflict, Forbidden, Invalid, NotFound

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass
class _Failed:
    """How often something has failed in a row, with what, and until when (s) it is left alone."""

    times: int = 0
    told: str = ""
    until: float | None = None


class Attempts:
    """Attempts to do something about a gang; what fails hinders no other gang.

    Args:
        clock: the time.
        refused: gets a gang and why something about it was refused, as somebody has to act.
    """

    def __init__(self, clock: Clock, refused: Callable[[Key, str], Awaitable[None]]) -> None:
        self._clock = clock
        self._refused = refused
        self._jitter = random.Random()
        self._failed: dict[tuple[Key, str], _Failed] = {}

    async def make(
        self, key: Key, what: str, do: Callable[..., Awaitable[None]], *arguments: object
    ) -> None:
        """Do something about a gang, unless the same has failed a moment ago.

        ``what`` tells it from other things that are done about gangs. A failure is told once as
        long as it stays the same.
        """
        failed = self._failed.get((key, what), _Failed())
        if failed.until is not None:
            return
        try:
            await do(*arguments)
        except (NotFound, Conflict):
            pass  # something is gone, or another of its name is there: the watch tells
        except ClusterError as error:
            if str(error) != failed.told:
                _log.warning("gang %s/%s: %s", *key, error)
                if isinstance(error, Forbidden | Invalid):
                    await self._refused(key, str(error))
            times = failed.times + 1
            pause = pause_after(
                times, self._jitter, first=FIRST_PAUSE_SECONDS, longest=LONGEST_PAUSE_SECONDS
            )
            until = self._clock.now() + pause
            self._failed[key, what] = _Failed(times, str(error), until)
            return
        self._failed.pop((key, what), None)

    def due(self, now: float, gangs: Container[Key]) -> set[Key]:
        """The gangs about which something may be tried again; others than ``gangs`` are no more."""
        found = set()
        for (key, what), failed in [*self._failed.items()]:
            if key not in gangs:
                del self._failed[key, what]
            elif failed.until is not None and failed.until <= now:
                failed.until = None
                found.add(key)
        return found

    def next_due(self) -> float | None:
        """When there will be some next (seconds since 1970)."""
        times = (failed.until for failed in self._failed.values())
        return min((until for until in times if until is not None), default=None)
