"""Which objects are gone, so that late news of them do not bring them back."""

import math

from vcjob.controller.cluster import EventType

_REMEMBERED = 20_000


class Departed:
    """The UIDs of objects that are gone, the latest 20 000, and as of which version."""

    def __init__(self) -> None:
        self._versions: dict[str, float] = {}

    def note(self, uid: str, version: float = math.inf) -> None:
        """An object is gone, as news of this ``version`` say, or as a list that it is not in."""
        self._versions[uid] = version
        if len(self._versions) > _REMEMBERED:
            del self._versions[next(iter(self._versions))]

    def is_late(self, uid: str, event: EventType, version: int) -> bool:
        """Whether news are of an object that is gone, and only late.

        A deletion has a version of its own, which no other news of the object reach. An object that
        only left what is followed (its label was taken away) has that version still when somebody
        reads it, and a later one when it comes back. As of which version a list lacks an object is
        not known: then only what is followed can bring it back.
        """
        known = self._versions.get(uid)
        if known is None:
            return False
        return event is not EventType.ADDED if known == math.inf else version < known

    def is_back(self, uid: str) -> None:
        """An object is there after all."""
        self._versions.pop(uid, None)
