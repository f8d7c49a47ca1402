"""The time, and waiting for it: arguments of everything that decides or waits."""

import asyncio
import time
from typing import Protocol

_LONGEST_SLEEP_SECONDS = 60.0
"""After this the time is looked at again: somebody may have set the clock."""


class Clock(Protocol):
    """Seconds since 1970, and a way to wait for one."""

    def now(self) -> float:
        """The time in seconds since 1970."""

    async def sleep_until(self, when: float) -> None:
        """Return once ``when`` has come, or earlier."""


class SystemClock:
    """This machine's clock."""

    def now(self) -> float:
        """The time in seconds since 1970."""
        return time.time()

    async def sleep_until(self, when: float) -> None:
        """Return once ``when`` has come, or after a minute: whoever waits looks again."""
        await asyncio.sleep(min(max(when - time.time(), 0.0), _LONGEST_SLEEP_SECONDS))
