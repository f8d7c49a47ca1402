"""What an operator or a webhook needs to do its work, a sentence for each thing that it lacks.

The readiness probe prints it, and every change is logged once: what stays as it is is not told
again and again.
"""

import logging
from collections.abc import Iterable

_UNKNOWN = "not known yet: whoever was asked has not answered so far"

_log = logging.getLogger(__name__)


class Readiness:
    """The conditions of one process.

    Args:
        order: in which conditions are told; others follow.
        expected: conditions that are not met before somebody says so.

    Attributes:
        doing: what it does when nothing is wrong: "leads", "stands by; x leads".
    """

    def __init__(self, order: Iterable[str] = (), *, expected: Iterable[str] = ()) -> None:
        self._order = tuple(order)
        self._wrong: dict[str, str] = dict.fromkeys(expected, _UNKNOWN)
        self._notes: dict[str, str] = {}
        self.doing = ""

    def fail(self, condition: str, sentence: str) -> None:
        """The condition is not met, and why, with what to do about it."""
        if self._wrong.get(condition) != sentence:
            _log.warning("%s: %s", condition, sentence)
        self._wrong[condition] = sentence
        self._notes.pop(condition, None)

    def meet(self, condition: str, note: str = "", *, warn: bool = False) -> None:
        """The condition is met. ``note`` is worth knowing; with ``warn`` somebody should act."""
        before = self._wrong.pop(condition, "")
        if before or self._notes.get(condition, "") != note:
            level = logging.WARNING if warn else logging.INFO
            _log.log(level, "%s: %s", condition, note or "as it should be")
        self._notes[condition] = note

    def of(self, condition: str) -> str:
        """What is wrong with a condition; empty if it is met."""
        return self._wrong.get(condition, "")

    @property
    def ready(self) -> bool:
        """Whether every condition is met."""
        return not self._wrong

    def text(self) -> str:
        """For people who look at the probe: a line each, what is wrong first."""
        first = "ready" if self.ready else "not ready"
        lines = [f"{first}: {self.doing}" if self.ready and self.doing else first]
        for told in (self._wrong, self._notes):
            known = [one for one in self._order if one in told]
            others = [one for one in told if one not in self._order]
            lines += [f"{one}: {told[one]}" for one in (*known, *others) if told[one]]
        return "\n".join(lines) + "\n"
