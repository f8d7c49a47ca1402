"""Whether somebody of Volcano renews a Lease, told from looks at it by our own time alone.

A Lease is renewed if it changes between looks, and abandoned if it stays the same for as long as it
says; until one of the two has been seen nothing is certain. (Who wants a Lease for himself need not
know whether it is renewed: ``controller/leading.py``.)
"""

from enum import StrEnum

from vcjob.api.types import Object
from vcjob.controller.leases import LeaseSpec


class Holding(StrEnum):
    """What is known of a Lease."""

    FREE = "nobody holds it"
    UNCERTAIN = "somebody is named as its holder; whether it is renewed will show"
    HELD = "its holder renews it"
    ABANDONED = "its holder renews it no more"


class Sightings:
    """Looks at one Lease. ``lease`` is what it said at the last of them."""

    def __init__(self) -> None:
        self.lease = LeaseSpec()
        self._looked = False
        self._since = 0.0
        self._renewed = False

    def look(self, lease: Object | None, now: float) -> Holding:
        """Take note of the Lease (None if there is none) at ``now``, seconds of a steady clock."""
        seen = LeaseSpec.of(lease)
        if seen != self.lease or not self._looked:
            self._renewed = self._looked and bool(seen.holder_identity)
            self._since = now
        self.lease, self._looked = seen, True
        if not seen.holder_identity:
            return Holding.FREE
        if now - self._since > seen.seconds:
            return Holding.ABANDONED
        return Holding.HELD if self._renewed else Holding.UNCERTAIN
