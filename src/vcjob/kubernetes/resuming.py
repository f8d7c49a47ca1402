"""Following the output of one run of a container, whatever becomes of the connection meanwhile.

Lines are asked for with their times. After a break the server is asked for what came since the time
of the last line; of that, lines that were there already are left out: those of an earlier time
(servers may count in whole seconds), and as many of the same time as had come.
"""

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import Enum, auto

import msgspec

from vcjob.controller.cluster import NotFound, Unavailable
from vcjob.kubernetes.logs import LogOptions

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[-+]\d\d:\d\d)) ?")
_FIRST_DELAY_SECONDS = 0.1
_LONGEST_DELAY_SECONDS = 10.0
_MOST_TRIES = 9


class RunState(Enum):
    """What has become of the run."""

    RUNS = auto()
    ENDED = auto()
    RESTARTED = auto()
    """The container runs once more, and what it printed before is what came before the restart."""
    GONE = auto()
    """Its output cannot be had any more."""


OpenLines = Callable[[LogOptions], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Asks for output; ``log_lines`` with its first arguments."""


async def followed_lines(
    open_lines: OpenLines,
    options: LogOptions,
    state_of_run: Callable[[], Awaitable[RunState]],
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[bytes]:
    """Lines as ``options`` want them, each once, until the run has ended.

    Raises what ``open_lines`` raises (NotFound only while output is missing), and Unavailable when
    the server has not answered for about half a minute, or the output is gone.
    """
    place = _Place(options)
    failures = 0
    at_an_end = False
    while True:
        broken: Unavailable | None = None
        try:
            async with open_lines(place.options()) as lines:
                async for line in lines:
                    failures = 0
                    stamp = _STAMP.match(line)
                    if stamp is None:  # a word of the server's own
                        yield line
                    elif place.is_new(stamp[1]):
                        yield line if options.timestamps else line[stamp.end() :]
            if place.previous:
                return
        except NotFound:
            if at_an_end:  # the pod went right after its end, which its status had not told yet
                return
            raise
        except Unavailable as error:
            broken = error
        try:
            state = await state_of_run()
        except Unavailable as error:
            broken = broken or error
        else:
            if broken is None and state is not RunState.RUNS:
                return
            if broken is not None and state is RunState.GONE:
                raise broken
            place.previous = state is RunState.RESTARTED
        failures += 1
        at_an_end = broken is None
        if broken is not None and failures == _MOST_TRIES:
            raise broken
        # An end that was none: a server that stopped, or a status that comes later than the end.
        await pause(min(_FIRST_DELAY_SECONDS * 2**failures, _LONGEST_DELAY_SECONDS))


class _Place:
    """How far one has read: the time of the last line, and how many lines of that time came."""

    def __init__(self, options: LogOptions) -> None:
        self.previous = False
        self._options = msgspec.structs.replace(options, timestamps=True)
        self._begun = time.monotonic()
        self._asked = False
        self._last = b""
        self._count = 0
        self._again = 0
        self._catching_up = False

    def options(self) -> LogOptions:
        """What to ask for now."""
        options = self._options
        if self.previous:
            options = msgspec.structs.replace(options, follow=False, previous=True)
        if self._last:
            self._catching_up, self._again = True, self._count
            since = self._last.decode()
            return msgspec.structs.replace(options, since_time=since, since_seconds=None, tail=None)
        if self._asked and options.tail == 0:  # nothing came, of what has come since the beginning
            waited = math.ceil(time.monotonic() - self._begun)
            return msgspec.structs.replace(options, since_seconds=max(waited, 1), tail=None)
        self._asked = True
        return options

    def is_new(self, stamp: bytes) -> bool:
        """Whether a line of this time has not come before; it has now."""
        if self._catching_up:
            if stamp == self._last and self._again:
                self._again -= 1
                return False
            if stamp != self._last:
                if _order(stamp) < _order(self._last):
                    return False
                self._catching_up = False
        self._count = self._count + 1 if stamp == self._last else 1
        self._last = stamp
        return True


def _order(stamp: bytes) -> tuple[datetime, bytes]:
    """Times in their order; Python's have microseconds, the text nanoseconds."""
    return datetime.fromisoformat(stamp.decode()), stamp
