"""What users ask of a Job: by Commands, and by the annotation that suspends it.

Source: lifecycle.md section 8.
"""

from collections.abc import Iterable

import msgspec

from vcjob.api.names import SUSPEND
from vcjob.api.types import Object
from vcjob.core.actions import FINAL, Action
from vcjob.core.draft import Draft, start

_ACTIONS = {action.value: action for action in Action}


def obey_commands(draft: Draft, commands: Iterable[Object]) -> bool:
    """Carry out Commands that were not yet handled, oldest first, up to the first with an effect.

    Returns whether one had. The rest waits for the next pass: each effect is seen by itself.
    """
    present = sorted(
        commands,
        key=lambda obj: (obj["metadata"].get("creationTimestamp", ""), obj["metadata"]["name"]),
    )
    handled = [uid for uid in map(_uid, present) if uid in draft.state.commands]
    effect = False
    for command in present:
        if effect or _uid(command) in handled:
            continue
        handled.append(_uid(command))
        effect = _obey(draft, command)
    draft.state = msgspec.structs.replace(draft.state, commands=tuple(handled))
    return effect


def obey_annotation(draft: Draft) -> None:
    """Suspend or resume if the annotation has changed since it was last acted upon."""
    wanted = draft.job.metadata.annotations.get(SUSPEND, "").lower() == "true"
    if wanted == draft.state.suspended or draft.phase in FINAL:
        return
    draft.state = msgspec.structs.replace(draft.state, suspended=wanted)
    if wanted:
        start(draft, Action.ABORT_JOB, f"the annotation {SUSPEND} was set to true")
    else:
        start(draft, Action.RESUME_JOB, f"the annotation {SUSPEND} no longer says true")


def _obey(draft: Draft, command: Object) -> bool:
    name = command["metadata"]["name"]
    text = command.get("action", "")
    action = _ACTIONS.get(text)
    why = f": {command['reason']}" if command.get("reason") else ""
    if action is None:
        draft.tell("Warning", "CommandIssued", f"Command {name} asks for unknown action {text!r}")
        return False
    draft.tell("Normal", "CommandIssued", f"Command {name} asks for {action}{why}")
    if start(draft, action, f"a Command asked for {action}{why}"):
        return True
    nothing = f"{action} changes nothing in phase {draft.phase or 'New'}"
    draft.tell("Normal", "CommandIssued", nothing)
    return False


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])
