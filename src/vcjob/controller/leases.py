"""What a Lease says, and whether it has run out, told by the looker's own time alone.

Clocks of different machines differ, so the times that stand in a Lease are never compared with
ours: it has run out when it has stayed the same for as long as it says. Source: client-go, package
leaderelection (the same rule, and the meaning of the fields).
"""

import msgspec

from vcjob.api.types import Object

USUAL_SECONDS = 15.0
"""How long a Lease lasts that does not say it; the default of Volcano and of client-go."""


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a Lease says; texts are empty and numbers 0 where it says nothing."""

    holder_identity: str = ""
    acquire_time: str = ""
    renew_time: str = ""
    lease_duration_seconds: float = 0.0
    lease_transitions: int = 0

    @classmethod
    def of(cls, lease: Object | None) -> "LeaseSpec":
        """The fields of a Lease (None if there is none); nothing of one that cannot be read."""
        given = {name: value for name, value in ((lease or {}).get("spec") or {}).items() if value}
        try:
            return msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError:
            return cls()

    @property
    def seconds(self) -> float:
        """How long it lasts after it was renewed."""
        return self.lease_duration_seconds or USUAL_SECONDS


class Expiry:
    """When a Lease runs out that somebody else holds, by what was seen of it.

    A Lease that vanishes while somebody held it may be held all the same: it counts as unchanged.
    """

    def __init__(self) -> None:
        self.seen = LeaseSpec()
        self._since = 0.0

    def look(self, lease: Object | None, now: float) -> None:
        """Take note of the Lease (None if there is none) at ``now``, seconds of a steady clock."""
        spec = LeaseSpec.of(lease)
        if lease is not None and spec != self.seen:
            self.seen, self._since = spec, now

    def silence(self, now: float) -> float:
        """How long (s) the Lease has been held and has not changed."""
        return now - self._since if self.seen.holder_identity else 0.0

    @property
    def at(self) -> float:
        """When it runs out, by the same clock; ``-inf`` if nobody holds it."""
        return self._since + self.seen.seconds if self.seen.holder_identity else float("-inf")
