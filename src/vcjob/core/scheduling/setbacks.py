"""When an admitted gang is taken back, because capacity went before all of it had a node.

Without that, two gangs could hold half of what they need each, for ever. A gang whose minimum has
once started is never taken back.
"""

from collections.abc import Iterable
from typing import NamedTuple

from vcjob.api.types import Key
from vcjob.core.scheduling.booked import BookedGang, BookedPod
from vcjob.core.scheduling.places import Gang, Wait
from vcjob.core.times import short_duration, timestamp

TAKEN_BACK = "TakenBack"
"""Reason of the condition of a gang that was taken back; its pods are deleted while it says so."""

_LONGEST_PAUSE_SECONDS = 600.0
_MOST_DOUBLINGS = 10


class _Stuck(NamedTuple):
    since: float
    started: int


class Setbacks:
    """Who has been stuck since when, and who was taken back how often.

    Args:
        grace: how long (s) pods may find no node before their gang is taken back.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._stuck: dict[Key, _Stuck] = {}
        self._counts: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._quiet_since = 0.0

    def note(self, key: Key, gang: BookedGang | None, now: float) -> None:
        """A gang has changed; None if it is no more. Each pod that starts gives it new time."""
        if gang is None or not is_stuck(gang):
            self._stuck.pop(key, None)
            if gang is not None and gang.group is not None and _has_started(gang):
                self.forget(gang.group["metadata"]["uid"])
            return
        before = self._stuck.get(key)
        if before is None or gang.started() > before.started:
            self._stuck[key] = _Stuck(now, gang.started())

    def due(self, now: float) -> list[Key]:
        """The gangs whose time is over."""
        return [key for key in self._stuck if self._due_at(key) <= now]

    def next_due(self, *, only_pauses: bool = False) -> float | None:
        """When the next gang's time will be over, or its pause (seconds since 1970)."""
        stuck = () if only_pauses else map(self._due_at, self._stuck)
        return min((*stuck, *self._not_before.values()), default=None)

    def take_back(self, key: Key, uid: str, now: float) -> None:
        """A gang is taken back: it pauses, from the second time on and ever longer."""
        self._stuck.pop(key, None)
        before = self._counts.get(uid, 0)
        self._counts[uid] = before + 1
        if before:
            pause = self.grace * 2 ** min(before - 1, _MOST_DOUBLINGS)
            self._not_before[uid] = now + min(pause, _LONGEST_PAUSE_SECONDS)

    def quiet_since(self, now: float) -> None:
        """The pods of a gang that was taken back are gone: others get time to use the room."""
        self._quiet_since = now

    def end_pauses(self, now: float) -> bool:
        """End the pauses that are over; returns whether there were some."""
        over = [uid for uid, until in self._not_before.items() if until <= now]
        for uid in over:
            del self._not_before[uid]
        return bool(over)

    def put_off(self, gang: Gang) -> Wait | None:
        """Why a gang that was taken back may not start yet, None if it may."""
        until = self._not_before.get(gang.uid)
        if until is None:
            return None
        times = self._counts[gang.uid]
        return Wait(
            "TakenBackAgain",
            f"{gang.name} was taken back {times} times because its pods found no nodes although "
            f"there seemed to be room; it is tried again at {timestamp(until)}",
        )

    def forget(self, uid: str) -> None:
        """A gang has started, or is no more."""
        self._counts.pop(uid, None)
        self._not_before.pop(uid, None)

    def _due_at(self, key: Key) -> float:
        return max(self._stuck[key].since, self._quiet_since) + self.grace


def is_stuck(gang: BookedGang) -> bool:
    """Whether a gang that was let go lacks nodes for some of its minimum."""
    return bool(gang.least and gang.refused) and gang.phase == "Inqueue" and not _has_started(gang)


def is_clearing(gang: BookedGang) -> bool:
    """Whether pods of a gang that was taken back are still there."""
    return is_taken_back(gang) and any(True for _ in _let_go_before(gang))


def is_taken_back(gang: BookedGang) -> bool:
    """Whether the last that was said of a gang is that it was taken back."""
    conditions = ((gang.group or {}).get("status") or {}).get("conditions") or [{}]
    return gang.phase == "Pending" and conditions[-1].get("reason") == TAKEN_BACK


def pods_to_delete(gang: BookedGang) -> list[BookedPod]:
    """The pods of a gang that is taken back: gates cannot be put back, so they are made anew."""
    return [pod for pod in _let_go_before(gang) if not pod.is_leaving]


def taken_back(name: str, gang: BookedGang, grace: float) -> str:
    """What is told of a gang that is taken back."""
    least, without = gang.least, gang.least - gang.started()
    said = next(iter(gang.refused.values())).told.rstrip(".")
    return (
        f"{name} was taken back: {without} of the {least} pods that must start together found no "
        f"node for {short_duration(grace)}, although there had been room. Its pods are deleted and "
        f"made anew when there is room again. The scheduler said: {said}"
    )


def taken_back_before_start(name: str, wait: Wait) -> str:
    """What is told of an admitted gang whose room went before any of its pods could start."""
    return f"{name} was taken back before any of its pods could start: {wait.message}"


def _let_go_before(gang: BookedGang) -> Iterable[BookedPod]:
    return (
        pod for pod in gang.pods.values() if not (pod.is_held or pod.is_gated or pod.is_finished)
    )


def _has_started(gang: BookedGang) -> bool:
    return gang.started() >= max(gang.least, 1)
