"""What is written to the status of a PodGroup, as Volcano's scheduler would.

That a gang was taken back stays among its conditions until it has started: whoever finds its pods
missing after a crash can tell that nobody evicted them.

Source: job-api.md section 6; Volcano's documentation, "PodGroup".
"""

from vcjob.api.types import Object
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.places import Wait
from vcjob.core.scheduling.setbacks import TAKEN_BACK
from vcjob.core.times import timestamp

_COUNTED = ("Running", "Succeeded", "Failed")


def admitted(name: str, now: float, group: Object | None = None) -> Object:
    """The status of a PodGroup that was admitted just now; ``group`` is as it was until then."""
    fits = f"{name} may start: there is room for all that it needs to start"
    condition = _condition("Scheduled", "Fits", fits, now)
    return {"phase": "Inqueue", "conditions": [*_setback(group), condition]}


def pending(wait: Wait, now: float, group: Object | None = None) -> Object:
    """The status of a PodGroup that waits; ``group`` is as it was until then."""
    condition = _condition("Unschedulable", wait.reason, wait.message, now)
    before = () if wait.reason == TAKEN_BACK else _setback(group)
    return {"phase": "Pending", "conditions": [*before, condition]}


def told(group: Object | None) -> tuple[str, str]:
    """Reason and message of what a PodGroup that waits says last; empty if it says nothing."""
    status = (group or {}).get("status") or {}
    last = (status.get("conditions") or [{}])[-1]
    if status.get("phase") != "Pending" or last.get("type") != "Unschedulable":
        return "", ""
    return last.get("reason", ""), last.get("message", "")


def was_taken_back(group: Object | None) -> bool:
    """Whether a gang was taken back and has not started since."""
    return bool(_setback(group))


def progress(gang: BookedGang) -> Object | None:
    """Phase and counts of an admitted gang as they are; None if its PodGroup tells them."""
    if gang.group is None or gang.waits:
        return None
    started = gang.started()
    starts = gang.phase == "Inqueue" and started and started >= gang.least
    counts = {name.lower(): gang.phases[name] for name in _COUNTED}
    status: Object = {"phase": "Running" if starts else gang.phase, **counts}
    old = gang.group.get("status") or {}
    if starts and was_taken_back(gang.group):
        conditions = [one for one in old["conditions"] if one.get("reason") != TAKEN_BACK]
        status["conditions"] = conditions
    if all(old.get(name, 0) == value for name, value in status.items()):
        return None
    return status


def _setback(group: Object | None) -> list[Object]:
    """The condition that says that a gang was taken back, as a matter of the past."""
    conditions = ((group or {}).get("status") or {}).get("conditions") or ()
    found = [one for one in conditions if one.get("reason") == TAKEN_BACK]
    return [{**one, "status": "False"} for one in found[-1:]]


def _condition(type_: str, reason: str, message: str, now: float) -> Object:
    return {
        "type": type_,
        "status": "True",
        "lastTransitionTime": timestamp(now),
        "reason": reason,
        "message": message,
    }
