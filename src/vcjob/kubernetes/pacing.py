"""How fast writes go to an API server, and whose turn it is: rate, concurrency, fairness.

Whoever writes says for which Job. Jobs take turns, so that three pods of a small Job wait for one
write of each other Job, not for the ten thousand of a huge one. What matters least (Events) goes
when nothing else waits, or when many others went before it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Hashable
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_OTHERS_FIRST = 7
"""How many go before one of the last lane, if they wait."""
_CLOSE_ENOUGH = 1e-6
"""A loop's timer may be early by this much of a token."""


class Turns(Generic[K, T]):
    """A queue in which keys take turns; of one key, who came first goes first."""

    def __init__(self) -> None:
        self._lines: dict[K, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, key: K, item: T) -> None:
        """Let an item wait; a new key has its turn after those that wait already."""
        self._lines.setdefault(key, deque()).append(item)

    def take(self) -> T:
        """The next item; raises StopIteration if none waits."""
        key = next(iter(self._lines))
        line = self._lines.pop(key)
        item = line.popleft()
        if line:
            self._lines[key] = line
        return item


class Bucket:
    """A token bucket: ``rate`` tokens come a second (None: any number), ``burst`` are kept.

    Args:
        now: the time in seconds, from any start.
    """

    def __init__(self, rate: float | None, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._at = now

    def wait(self, now: float) -> float:
        """Seconds until there is a token."""
        if self._rate is None:
            return 0.0
        self._tokens = min(self._tokens + (now - self._at) * self._rate, self._burst)
        self._at = now
        lacking = 1 - self._tokens
        return lacking / self._rate if lacking > _CLOSE_ENOUGH else 0.0

    def take(self) -> None:
        """Take a token, which must be there."""
        if self._rate is not None:
            self._tokens -= 1


class Limits(msgspec.Struct, frozen=True):
    """How fast is written: ``rate`` writes a second in the long run (None: no limit), ``burst`` at
    once after a pause, ``at_once`` under way at the same time."""

    rate: float | None = None
    burst: int = 1
    at_once: int = 64


SPARING = Limits(rate=500.0, burst=1000)


class Pace:
    """Lets writes through within limits, each in its turn."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bucket: Bucket | None = None  # made in the loop whose time it goes by
        self._free = max(limits.at_once, 1)
        self._waiting: Turns[str, asyncio.Future[None]] = Turns()
        self._last: Turns[str, asyncio.Future[None]] = Turns()
        self._others = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextlib.asynccontextmanager
    async def turn(self, key: str, *, last: bool = False) -> AsyncIterator[None]:
        """Wait for a turn among those of ``key``, and have it until the end of the block.

        ``last``: whatever else waits goes first, most of the time.
        """
        turn = asyncio.get_running_loop().create_future()
        (self._last if last else self._waiting).add(key, turn)
        self._go_on()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._free += 1
            turn.cancel()
            self._go_on()

    def _go_on(self) -> None:
        """Let through what may go now; look again when the next token comes."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._bucket is None:
            self._bucket = Bucket(self._limits.rate, self._limits.burst, now)
        while self._free and (self._waiting or self._last):
            if wait := self._bucket.wait(now):
                if self._timer is None:
                    self._timer = loop.call_later(wait, self._token_came)
                return
            turn = self._next()
            if not turn.done():  # nobody gave up waiting
                self._bucket.take()
                self._free -= 1
                turn.set_result(None)

    def _next(self) -> "asyncio.Future[None]":
        if self._last and (not self._waiting or self._others >= _OTHERS_FIRST):
            self._others = 0
            return self._last.take()
        self._others = self._others + 1 if self._last else 0
        return self._waiting.take()

    def _token_came(self) -> None:
        self._timer = None
        self._go_on()
