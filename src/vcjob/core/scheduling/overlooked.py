"""Pods that may be bound and are not, although there seems to be room.

Kubernetes' scheduler knows reasons that are not reckoned with here (the zones of volumes, pod
affinity). Room is held for what it refused, as it binds that as soon as it fits; but not for ever
where it does not though it should: others could use it.
"""

from collections.abc import Mapping

PodKind = tuple[str, str]
"""The UID of a PodGroup, and a task."""


class Overlooked:
    """Which pods have been overlooked since when.

    Args:
        grace: after what time (s) nothing is held for them any more.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._since: dict[PodKind, float] = {}
        self._given_up: frozenset[PodKind] = frozenset()

    def look(self, refused: Mapping[PodKind, bool], now: float) -> bool:
        """Take in all that is refused now, and whether it seems to fit.

        Returns whether room is no longer held that was until now.
        """
        self._since = {one: self._since.get(one, now) for one, fits in refused.items() if fits}
        before = self._given_up
        self._given_up = frozenset(one for one in self._since if self._ends_at(one) <= now)
        return bool(self._given_up - before)

    def next_due(self) -> float | None:
        """When the next one's time will be over (seconds since 1970)."""
        waiting = self._since.keys() - self._given_up
        return min(map(self._ends_at, waiting), default=None)

    def is_overlooked(self, pods: PodKind) -> bool:
        """Whether nothing is to be held for these pods."""
        return pods in self._given_up

    def _ends_at(self, pods: PodKind) -> float:
        return self._since[pods] + self._grace
