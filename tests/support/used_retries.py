"""What is promised of the restarts that use up retries, and of those that do not.

A status names one cause of a restart, though several may have come together: one that counts is
enough for the restart to count.
"""

import re

from vcjob.api.names import UNCOUNTED_EVENTS
from vcjob.api.types import Job, Object
from vcjob.core.state import state_of

_CAUSE = re.compile(r"(\(policy for (?P<event>[^)]+)\)|a Command asked for \w+); ")
_OF_EXIT_CODES = "PodFailed"
_COMMAND = "a Command"


def uncounted_events(job: Object) -> set[str]:
    """The events whose restarts of this Job use up no retry."""
    text = job["metadata"].get("annotations", {}).get(UNCOUNTED_EVENTS, "")
    return set(text.split(",")) - {""}


def used_retries(job: Object) -> int:
    """How many retries are used up, as the status tells."""
    retry = job.get("status", {}).get("retryCount", 0)
    free = [one for one in state_of(Job.of(job)).uncounted_retries if one <= retry]
    return int(retry - len(free))


class UsedRetries:
    """Looks at the statuses of Jobs; ``wrong`` gets what was broken."""

    def __init__(self, wrong: list[str]) -> None:
        self._wrong = wrong
        self._counted: dict[str, set[int]] = {}

    def look(self, job: Object, old: Object, new: Object) -> None:
        """What counts once counts for good, and so does what does not; none is used twice."""
        uid, retry = job["metadata"]["uid"], new.get("retryCount", 0)
        before, after = (state_of(Job.of({**job, "status": one})) for one in (old, new))
        counted = self._counted.setdefault(uid, set())
        free = set(after.uncounted_retries)
        is_resume = retry == old.get("retryCount", 0) and (before.resumed or after.resumed)
        if _cause(new) != _cause(old) and not is_resume and _counts(job, _cause(new)):
            counted.add(retry)
        if free & counted:
            self._wrong.append(f"restarts {free & counted} count, and used up no retry")
        if set(before.uncounted_retries) - free - {retry}:
            self._wrong.append("a restart that used up no retry does so now")
        phases = [one.get("state", {}).get("phase") for one in (old, new)]
        is_over = len(counted) >= job["spec"]["maxRetry"]
        if phases == ["Restarting", "Pending"] and is_over and not before.resumed:
            self._wrong.append("an attempt began beyond maxRetry")


def _cause(status: Object) -> tuple[int, str]:
    """What a restart is told to come of, and which it is; nothing for other phases."""
    state = status.get("state", {})
    cause = _CAUSE.search(state.get("message", ""))
    if state.get("phase") != "Restarting" or not cause:
        return 0, ""
    return status.get("retryCount", 0), cause["event"] or _COMMAND


def _counts(job: Object, cause: tuple[int, str]) -> bool:
    """Whether a restart of that cause, as far as it is told, uses up a retry."""
    retry, event = cause
    if event.startswith("exit code"):
        event = _OF_EXIT_CODES
    return retry > 0 and event not in uncounted_events(job)
