"""What is written to the status of a PodGroup, as Volcano's scheduler would.

Source: job-api.md section 6; Volcano's documentation, "PodGroup".
"""

from vcjob.api.types import Object
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.places import Wait
from vcjob.core.times import timestamp

_COUNTED = ("Running", "Succeeded", "Failed")


def admitted(name: str, now: float) -> Object:
    """The status of a PodGroup that was admitted just now."""
    fits = f"{name} may start: there is room for all that it needs to start"
    return {"phase": "Inqueue", "conditions": [_condition("Scheduled", "Fits", fits, now)]}


def pending(wait: Wait, now: float) -> Object:
    """The status of a PodGroup that waits."""
    condition = _condition("Unschedulable", wait.reason, wait.message, now)
    return {"phase": "Pending", "conditions": [condition]}


def told(group: Object | None) -> tuple[str, str]:
    """Reason and message of what a PodGroup that waits says last; empty if it says nothing."""
    status = (group or {}).get("status") or {}
    last = (status.get("conditions") or [{}])[-1]
    if status.get("phase") != "Pending" or last.get("type") != "Unschedulable":
        return "", ""
    return last.get("reason", ""), last.get("message", "")


def progress(gang: BookedGang) -> Object | None:
    """Phase and counts of an admitted gang as they are; None if its PodGroup tells them."""
    if gang.group is None or gang.waits:
        return None
    started = gang.started()
    starts = gang.phase == "Inqueue" and started and started >= gang.least
    counts = {name.lower(): gang.phases[name] for name in _COUNTED}
    status = {"phase": "Running" if starts else gang.phase, **counts}
    old = gang.group.get("status") or {}
    if all(old.get(name, 0) == value for name, value in status.items()):
        return None
    return status


def _condition(type_: str, reason: str, message: str, now: float) -> Object:
    return {
        "type": type_,
        "status": "True",
        "lastTransitionTime": timestamp(now),
        "reason": reason,
        "message": message,
    }
