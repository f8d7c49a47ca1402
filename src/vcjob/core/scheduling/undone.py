"""Decisions about gangs that somebody else undoes: another scheduler, or a script.

Two who undo each other would write as fast as the API server lets them. Whoever finds a decision
undone again and again waits ever longer before deciding anew.
"""

from vcjob.core.scheduling.places import Gang, Wait
from vcjob.core.times import timestamp

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_MOST_DOUBLINGS = 10
_FORGIVEN_SECONDS = 600.0
_WAITING_PHASES = ("", "Pending")


class Undone:
    """What was decided about gangs last, by the UID of their PodGroup, and how often in vain."""

    def __init__(self) -> None:
        self._decided: dict[str, bool] = {}
        self._times: dict[str, int] = {}
        self._last: dict[str, float] = {}
        self._not_before: dict[str, float] = {}

    def decided(self, uid: str, phase: str) -> None:
        """A phase was written."""
        self._decided[uid] = phase in _WAITING_PHASES

    def note(self, uid: str, phase: str, now: float) -> int:
        """A PodGroup says this phase: how often decisions were undone if it is again, else 0.

        From the second time on nothing is to be decided for a while. After ten minutes without a
        quarrel it counts from one.
        """
        waits = phase in _WAITING_PHASES
        if self._decided.get(uid, waits) == waits:
            return 0
        self._decided[uid] = waits
        quiet = now - self._last.get(uid, now) > _FORGIVEN_SECONDS
        self._last[uid] = now
        self._times[uid] = times = 1 if quiet else self._times.get(uid, 0) + 1
        if times > 1:
            pause = _FIRST_PAUSE_SECONDS * 2 ** min(times - 2, _MOST_DOUBLINGS)
            self._not_before[uid] = now + min(pause, _LONGEST_PAUSE_SECONDS)
        return times

    def is_paused(self, uid: str) -> bool:
        """Whether nothing is to be decided about a gang at the moment."""
        return uid in self._not_before

    def put_off(self, gang: Gang) -> Wait | None:
        """Why a gang is not admitted though it may fit, None if nothing is in the way."""
        if not self.is_paused(gang.uid):
            return None
        times, until = self._times[gang.uid], timestamp(self._not_before[gang.uid])
        return Wait(
            "Undone",
            f"somebody else undid {times} times what was decided about {gang.name}; is another "
            f"scheduler at work? It is decided anew at {until}",
        )

    def next_due(self) -> float | None:
        """When the next pause will be over (seconds since 1970)."""
        return min(self._not_before.values(), default=None)

    def end_pauses(self, now: float) -> bool:
        """End the pauses that are over; returns whether there were some."""
        over = [uid for uid, until in self._not_before.items() if until <= now]
        for uid in over:
            del self._not_before[uid]
        return bool(over)

    def forget(self, uid: str) -> None:
        """A PodGroup is no more."""
        for known in (self._decided, self._times, self._last, self._not_before):
            known.pop(uid, None)
