"""What an operator needs to do its work, each condition with one sentence when it is not met.

The readiness probe prints it, and every change of it is logged once: a condition that stays is not
told again and again.
"""

import logging
from enum import StrEnum

_log = logging.getLogger(__name__)


class Condition(StrEnum):
    """What has to be so, in the order in which one depends on another."""

    SERVER = "server"
    KINDS = "kinds"
    RIGHTS = "rights"
    VOLCANO = "volcano"
    SCHEDULER = "scheduler"
    LEASE = "lease"
    QUEUE = "queue"
    CACHES = "caches"


class Readiness:
    """The conditions of one operator.

    Attributes:
        doing: what it does when nothing is wrong: "leads", "stands by; x leads".
        notes: what is worth knowing and not wrong, by topic.
    """

    def __init__(self) -> None:
        self._wrong: dict[Condition, str] = {Condition.SERVER: "not asked yet"}
        self.doing = "starting"
        self.notes: dict[str, str] = {}

    def fail(self, condition: Condition, sentence: str) -> None:
        """The condition is not met, and why, with what to do about it."""
        if self._wrong.get(condition) != sentence:
            self._wrong[condition] = sentence
            _log.warning("%s: %s", condition, sentence)

    def meet(self, condition: Condition) -> None:
        """The condition is met."""
        if self._wrong.pop(condition, None):
            _log.info("%s: as it should be", condition)

    def of(self, condition: Condition) -> str:
        """What is wrong with a condition; empty if it is met."""
        return self._wrong.get(condition, "")

    @property
    def ready(self) -> bool:
        """Whether every condition is met."""
        return not self._wrong

    def text(self) -> str:
        """For people who look at the probe: a line each."""
        lines = [f"ready: {self.doing}" if self.ready else "not ready"]
        lines += [f"{one}: {self._wrong[one]}" for one in Condition if one in self._wrong]
        lines += [f"{topic}: {note}" for topic, note in self.notes.items()]
        return "\n".join(lines) + "\n"
