"""What a webhook needs to do its work, and a sentence for each thing that it lacks.

The readiness probe prints it, and every change is logged once.
"""

import logging
from collections.abc import Iterable

_log = logging.getLogger(__name__)


class Readiness:
    """The conditions of one webhook; those ``expected`` are not met before somebody says so."""

    def __init__(self, expected: Iterable[str] = ()) -> None:
        self._wrong: dict[str, str] = dict.fromkeys(expected, "not known yet")
        self._notes: dict[str, str] = {}

    def fail(self, condition: str, sentence: str) -> None:
        """The condition is not met, and why, with what to do about it."""
        if self._wrong.get(condition) != sentence:
            _log.warning("%s: %s", condition, sentence)
        self._wrong[condition] = sentence
        self._notes.pop(condition, None)

    def meet(self, condition: str, note: str = "", *, warn: bool = False) -> None:
        """The condition is met. ``note`` is worth knowing; with ``warn`` somebody should act."""
        before = self._wrong.pop(condition, None)
        if before or self._notes.get(condition) != note:
            level = logging.WARNING if warn else logging.INFO
            _log.log(level, "%s: %s", condition, note or "as it should be")
        self._notes[condition] = note

    @property
    def ready(self) -> bool:
        """Whether every condition is met."""
        return not self._wrong

    def text(self) -> str:
        """For people who look at the probe: a line each."""
        lines = ["ready" if self.ready else "not ready"]
        lines += [f"{condition}: {sentence}" for condition, sentence in self._wrong.items()]
        lines += [f"{condition}: {note or 'ok'}" for condition, note in self._notes.items()]
        return "\n".join(lines) + "\n"
