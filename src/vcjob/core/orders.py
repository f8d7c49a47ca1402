"""What users ask of a Job: by Commands, and by the annotation that suspends it.

Source: lifecycle.md section 8.
"""

from collections.abc import Iterable

import msgspec

from vcjob.api.names import SUSPEND
from vcjob.api.types import Object
from vcjob.core.actions import FINAL, Action
from vcjob.core.annotations import switched
from vcjob.core.draft import Draft, start

_ACTIONS = {action.value: action for action in Action}


def obey(draft: Draft, commands: Iterable[Object]) -> None:
    """Carry out what was not yet, the oldest first, up to the first that has an effect.

    The rest waits for the next pass: each effect is seen by itself. Nothing tells when the
    annotation was changed, but a Command that is newer than the Job's last change came after it.
    """
    present = sorted(commands, key=age)
    known = set(draft.state.commands)
    still_there = tuple(uid for uid in map(_uid, present) if uid in known)
    draft.state = msgspec.structs.replace(draft.state, commands=still_there)
    changed = _version(draft.job.metadata.resource_version)
    new = [one for one in present if _uid(one) not in known]
    older = [one for one in new if _version_of(one) <= changed]
    newer = [one for one in new if _version_of(one) > changed]
    if not _obey_one(draft, older) and not obey_annotation(draft):
        _obey_one(draft, newer)


def obey_annotation(draft: Draft) -> bool:
    """Suspend or resume if the annotation has changed since it was last acted upon.

    A value that means nothing changes nothing. Returns whether there was an effect.
    """
    wanted = switched(draft.job, SUSPEND)
    if wanted is None or wanted == draft.state.suspended or draft.phase in FINAL:
        return False
    draft.state = msgspec.structs.replace(draft.state, suspended=wanted)
    if wanted:
        return start(draft, Action.ABORT_JOB, f"the annotation {SUSPEND} was set to true")
    return start(draft, Action.RESUME_JOB, f"the annotation {SUSPEND} no longer says true")


def age(command: Object) -> tuple[str, int, str]:
    """What Commands are sorted by: within a second the versions tell which one came first."""
    metadata = command["metadata"]
    return metadata.get("creationTimestamp", ""), _version_of(command), metadata["name"]


def _obey_one(draft: Draft, commands: Iterable[Object]) -> bool:
    """Carry out Commands up to the first that has an effect; returns whether one had."""
    return any(_obey(draft, command) for command in commands)


def _obey(draft: Draft, command: Object) -> bool:
    """Carry out one Command; returns whether it had an effect."""
    handled = (*draft.state.commands, _uid(command))
    draft.state = msgspec.structs.replace(draft.state, commands=handled)
    name = command["metadata"]["name"]
    text = command.get("action", "")
    action = _ACTIONS.get(text)
    why = f": {command['reason']}" if command.get("reason") else ""
    if action is None:
        asked = f"Command {name} asks for unknown action {text!r}"
        draft.tell("Warning", "CommandIssued", f"{asked}: there are {', '.join(_ACTIONS)}")
        return False
    draft.tell("Normal", "CommandIssued", f"Command {name} asks for {action}{why}")
    told = len(draft.told)
    if start(draft, action, f"a Command asked for {action}{why}"):
        return True
    if len(draft.told) > told:
        return False  # why not has been said
    nothing = f"{action} changes nothing in phase {draft.phase or 'New'}"
    draft.tell("Normal", "CommandIssued", nothing)
    return False


def _version_of(obj: Object) -> int:
    return _version(obj["metadata"].get("resourceVersion", ""))


def _version(text: str) -> int:
    return int(text or 0)


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])
