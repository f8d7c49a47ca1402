"""How often a Job's status is written, so that thousands of pod changes are a few writes."""

from dataclasses import dataclass

_MOST_OWED = 10
"""Writes of which the budget is not yet there: decisions beyond these cost no more waiting."""


@dataclass
class StatusPace:
    """The budget of one Job: a write each ``interval`` (s). Times are of a steady clock.

    What is decided is written at once, and uses the budget up, also that of the time to come. What
    only informs waits until there is budget for it and for a decision right after it. So a Job
    has, beside decisions that follow each other faster, at most one write an interval.
    """

    _whole_at: float = float("-inf")

    def wait(self, now: float, interval: float) -> float:
        """How long (s) what only informs has to wait; 0: not at all."""
        return max(self._whole_at + interval - now, 0.0) if interval else 0.0

    def spend(self, now: float, interval: float) -> None:
        """Something is written now."""
        self._whole_at = min(max(self._whole_at, now) + interval, now + _MOST_OWED * interval)
