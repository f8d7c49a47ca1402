"""Actions that were asked for and found nothing to act upon: told once, not in each pass again.

Some occurrences last: a PodGroup stays Unknown, a task stays complete, a pod stays Pending. If such
a one asks for a restart of pods that there are not, it is refused until it has passed. A task
without partitions never gets any: a restart of one is refused for good, whatever each occurrence
would say of itself.
"""

from collections.abc import Iterable

import msgspec

from vcjob.core.actions import Action, Event
from vcjob.core.draft import Draft
from vcjob.core.facts import PodPhase
from vcjob.core.occurrences import Occurrence


def is_refused(draft: Draft, event: Event, task: str, action: Action) -> bool:
    """Whether this answer to an event of a task (or the whole Job, "") was refused."""
    return _refused(event, task, action) in draft.state.refused


def refuse(draft: Draft, event: str, task: str, action: Action) -> None:
    """Refuse it from now on, if the event is of those that last, or the answer will never do."""
    lasts = event in (Event.UNKNOWN, Event.TASK_COMPLETED, Event.POD_PENDING)
    if lasts or _is_for_good(task, action):
        refused = (*draft.state.refused, _refused(event, task, action))
        draft.state = msgspec.structs.replace(draft.state, refused=refused)


def forget_refused(draft: Draft, found: Iterable[Occurrence]) -> None:
    """What no longer happens may happen anew."""
    lasting = (
        *(f"{one.event} {one.task} " for one in found),
        *(
            f"{Event.POD_PENDING} {name} "
            for name, pods in draft.observed.tasks.items()
            if pods.at(PodPhase.PENDING)
        ),
    )
    kept = tuple(
        one
        for one in draft.state.refused
        if one.startswith(lasting) or _is_for_good(*one.split(" ")[1:])
    )
    draft.state = msgspec.structs.replace(draft.state, refused=kept)


def _is_for_good(task: str, action: str) -> bool:
    """Whether it is the task's specification that gives an action nothing to act upon."""
    return bool(task) and action == Action.RESTART_PARTITION


def _refused(event: str, task: str, action: Action) -> str:
    return f"{event} {task} {action}"
