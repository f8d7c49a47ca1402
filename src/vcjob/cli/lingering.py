"""What Jobs wait for, told once they have waited for the same for a while.

Most of what a Job waits for is over in a moment, and would be noise.
"""

from collections.abc import Iterator

_SECONDS = 5.0


class Lingering:
    """The messages of several Jobs, by UID. Times are seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[str, float]] = {}
        self._told: dict[str, list[str]] = {}

    def says(self, uid: str, message: str, now: float) -> None:
        """A Job says this now (empty: nothing)."""
        if self._since.get(uid, ("", 0.0))[0] != message:
            self._since[uid] = message, now

    def was_told(self, uid: str, message: str) -> None:
        """The user knows this; what begins with it need not be told again."""
        if message:
            self._told.setdefault(uid, []).append(message)

    def due(self, now: float) -> Iterator[tuple[str, str]]:
        """UIDs and messages of Jobs that have said the same for a while, each message once."""
        for uid, (message, since) in self._since.items():
            known = any(message.startswith(told) for told in self._told.get(uid, ()))
            if message and not known and now - since >= _SECONDS:
                self.was_told(uid, message)
                yield uid, message
