"""What may be asked of an API server again, when, and what an answer then means.

A write whose answer was lost has an unclear outcome: it may have been carried out. Asked again, it
meets what it did itself: the object exists, is gone, or has another version. So whoever repeats a
write looks at such an answer before taking it for an error. Objects have names that say what they
are for, so that a second create can never make a second object.

Source: Kubernetes documentation, "Kubernetes API Concepts"; API conventions, "HTTP Status codes";
"API Priority and Fairness" (429).
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from enum import Enum, auto

import msgspec

from vcjob.api.types import Object
from vcjob.controller.backing_off import pause_after
from vcjob.controller.cluster import ClusterError, Conflict, Unavailable
from vcjob.kubernetes.errors import NoCredentials, NotTrusted, Unreachable

_log = logging.getLogger(__name__)


class Outcome(Enum):
    """What is known of a request that failed."""

    REFUSED = auto()
    """It was answered: nothing happened, and nothing will if it is asked again."""
    NOTHING_DONE = auto()
    """Nothing happened; asked again it may succeed."""
    UNCLEAR = auto()
    """It may have been carried out."""


def outcome_of(error: ClusterError, *, conflicts_pass: bool) -> Outcome:
    """What an error tells.

    ``conflicts_pass``: the request named no version, so that a conflict (of a quota, or of writes
    at the same moment) is over by the next time.
    """
    if isinstance(error, NoCredentials | NotTrusted):
        return Outcome.REFUSED  # for longer than anybody should wait here
    if isinstance(error, Unreachable) or (isinstance(error, Conflict) and conflicts_pass):
        return Outcome.NOTHING_DONE
    return Outcome.UNCLEAR if isinstance(error, Unavailable) else Outcome.REFUSED


class Patience(msgspec.Struct, frozen=True):
    """How often a request is made at most, and how long (s) it is waited in between.

    The wait doubles each time from ``first`` to ``longest``. What the server asks for (Retry-After)
    counts instead, unless it is more than ``longest_asked``: then the error goes to the caller.
    """

    tries: int = 4
    first: float = 0.2
    longest: float = 5.0
    longest_asked: float = 30.0

    def wait(self, error: ClusterError, failed: int, jitter: random.Random) -> float | None:
        """Seconds until the next try after ``failed`` tries; None if there is none."""
        if failed >= self.tries or (_asked(error) or 0.0) > self.longest_asked:
            return None
        return self.pause(error, failed, jitter)

    def pause(self, error: ClusterError, failed: int, jitter: random.Random) -> float:
        """Seconds until the next try, for whoever tries without end."""
        asked = _asked(error)
        if asked is not None:
            return min(asked, self.longest_asked) * (1 + jitter.random() / 4)
        return pause_after(failed, jitter, first=self.first, longest=self.longest)


def _asked(error: ClusterError) -> float | None:
    return error.retry_after if isinstance(error, Unavailable) else None


PATIENT = Patience()
ONCE_MORE = Patience(tries=2)

Settle = Callable[[ClusterError], Awaitable[Object | None]]
"""Looks whether an error comes from an earlier try that was carried out; the object then."""


async def nothing_settled(_: ClusterError) -> None:
    """Every error is what it seems to be."""


class Retrier:
    """Makes requests until their outcome is clear, or patience ends.

    Args:
        jitter: spreads the tries of many.
        sleep: waits that many seconds.
    """

    def __init__(
        self,
        jitter: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._jitter = jitter
        self._sleep = sleep

    async def make(
        self,
        request: Callable[[], Awaitable[Object]],
        settle: Settle = nothing_settled,
        *,
        patience: Patience = PATIENT,
        conflicts_pass: bool = False,
        repeat_unclear: bool = True,
    ) -> Object:
        """The answer to a request; raises what the last try raised.

        After a try of unclear outcome ``settle`` looks at the errors of those that follow. A
        request that must not be carried out twice is not repeated unless ``repeat_unclear``.
        """
        unclear = False
        failed = 0
        while True:
            try:
                return await request()
            except ClusterError as error:
                if unclear and (settled := await settle(error)) is not None:
                    return settled
                failed += 1
                outcome = outcome_of(error, conflicts_pass=conflicts_pass)
                seconds = patience.wait(error, failed, self._jitter)
                final = outcome is Outcome.REFUSED or seconds is None
                if final or (outcome is Outcome.UNCLEAR and not repeat_unclear):
                    raise
                assert seconds is not None
                unclear = unclear or outcome is Outcome.UNCLEAR
                _log.debug("asking again in %.1f s: %s", seconds, error)
            await self._sleep(seconds)
