"""The time, and waiting for it: arguments of everything that decides or waits."""

import asyncio
import time
from typing import Protocol

_LONGEST_SLEEP_SECONDS = 60.0
"""After this the time is looked at again: somebody may have set the clock."""


class Clock(Protocol):
    """The time, in seconds since 1970 and by a clock that nobody sets, and ways to wait."""

    def now(self) -> float:
        """The time in seconds since 1970."""

    async def sleep_until(self, when: float) -> None:
        """Return once ``when`` has come, or earlier."""

    def steady(self) -> float:
        """Seconds of a clock that nobody sets: only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds of the steady clock."""


class SystemClock:
    """This machine's clock."""

    def now(self) -> float:
        """The time in seconds since 1970."""
        return time.time()

    async def sleep_until(self, when: float) -> None:
        """Return once ``when`` has come, or after a minute: whoever waits looks again."""
        await asyncio.sleep(min(max(when - time.time(), 0.0), _LONGEST_SLEEP_SECONDS))

    def steady(self) -> float:
        """Seconds of a clock that nobody sets: only differences mean something."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds of the steady clock."""
        await asyncio.sleep(max(seconds, 0.0))
