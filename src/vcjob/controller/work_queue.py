"""Keys of what is to be looked at: each once, first come first served, one worker a key."""

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from vcjob.controller.clock import Clock

K = TypeVar("K", bound=Hashable)

_SET_BACK_SECONDS = 1.0
"""A clock that is that much behind what it would be was set; less is how clocks are kept right."""

_FEW = 64
"""So many entries that no longer count need no clearing up."""


class WorkQueue(Generic[K]):
    """A queue of keys.

    A key that is added while it waits stays one; a key that is added while a worker has it comes
    again once the worker is done. A key that comes back goes to the end, so that nobody is kept
    waiting by one that has much to do. ``add_at`` adds a key at a time of ``clock`` (in seconds).
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[K, float] = {}
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._counter = 0
        self._filled = asyncio.Event()
        self._earlier = asyncio.Event()

    def __len__(self) -> int:
        """How many keys wait or are being worked on (not those for later)."""
        return len(self._waiting) + len(self._working)

    @property
    def longest_wait(self) -> float:
        """How long (s) the key has waited that no worker has had for the longest time; 0 if none
        waits."""
        since = next(iter(self._waiting.values()), None)
        return 0.0 if since is None else max(self._clock() - since, 0.0)

    def add(self, key: K) -> None:
        """Have a key looked at."""
        if key in self._working:
            self._again.add(key)
        else:
            self._waiting.setdefault(key, self._clock())
            self._filled.set()

    def add_at(self, key: K, when: float) -> None:
        """Have a key looked at then, or earlier."""
        if when <= self._clock():
            self.add(key)
        elif when < self._due.get(key, float("inf")):
            self._due[key] = when
            self._counter += 1
            heapq.heappush(self._later, (when, self._counter, key))
            self._clear_up()
            if self._later[0][1] == self._counter:
                self._earlier.set()

    def take_due(self) -> None:
        """Add the keys whose time has come."""
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            when, _, key = heapq.heappop(self._later)
            if self._due.get(key) == when:
                del self._due[key]
                self.add(key)

    def _take_all(self) -> None:
        keys, self._due, self._later = list(self._due), {}, []
        for key in keys:
            self.add(key)

    @property
    def next_due(self) -> float | None:
        """When the next key for later is due."""
        while self._later and self._due.get(self._later[0][2]) != self._later[0][0]:
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    async def wake(self, clock: Clock) -> None:
        """Add each key when its time has come, until cancelled.

        If the clock is set back meanwhile, all keys come at once: most were to come after a pause,
        which would take as much longer.
        """
        ahead = clock.now() - clock.steady()
        while True:
            before, ahead = ahead, clock.now() - clock.steady()
            if ahead < before - _SET_BACK_SECONDS:
                self._take_all()
            self.take_due()
            self._earlier.clear()  # before looking: whoever adds one from now on is heard
            due = self.next_due
            if due is None:
                await self._earlier.wait()
                continue
            sleeping = asyncio.ensure_future(clock.sleep_until(due))
            changing = asyncio.ensure_future(self._earlier.wait())
            try:
                await asyncio.wait({sleeping, changing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleeping.cancel()
                changing.cancel()

    def take(self) -> K | None:
        """The key that has waited longest, None if none waits. Give it back with ``done``."""
        self.take_due()
        for key in self._waiting:
            del self._waiting[key]
            self._working.add(key)
            return key
        return None

    def done(self, key: K) -> None:
        """A worker has finished with a key."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def forget(self, key: K) -> None:
        """Drop a key that is no more."""
        self._waiting.pop(key, None)
        self._again.discard(key)
        self._due.pop(key, None)

    def _clear_up(self) -> None:
        """Drop entries for later that no longer count, once they are most of all."""
        if len(self._later) > 2 * len(self._due) + _FEW:
            self._later = [one for one in self._later if self._due.get(one[2]) == one[0]]
            heapq.heapify(self._later)

    async def filled(self) -> None:
        """Wait until a key waits."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
