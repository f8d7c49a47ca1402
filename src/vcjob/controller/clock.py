"""The time, and waiting for it: arguments of everything that decides or waits."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since 1970, and a way to wait for one."""

    def now(self) -> float:
        """The time in seconds since 1970."""

    async def sleep_until(self, when: float) -> None:
        """Return once ``when`` has come."""


class SystemClock:
    """This machine's clock."""

    def now(self) -> float:
        """The time in seconds since 1970."""
        return time.time()

    async def sleep_until(self, when: float) -> None:
        """Return once ``when`` has come; the time is looked at again at least every minute."""
        while (rest := when - time.time()) > 0:
            await asyncio.sleep(min(rest, 60.0))
