"""Whether a Queue is open: what Commands, the queue above it and its PodGroups make of it.

A queue that is closed admits nothing any more and lets those go on that it has admitted: it is
Closing as long as there are PodGroups in it, then Closed. What is below it is closed with it,
marked, and opened with it again.

Source: Volcano's documentation, "Queue" and "Hierarchical Queue"; cli.md, "queue operate".
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from vcjob.api.names import CLOSED_BY_PARENT
from vcjob.api.queues import ROOT, QueueState, state_of
from vcjob.api.types import Object
from vcjob.core.draft import Told

COUNTERS = ("pending", "inqueue", "running", "unknown", "completed")
"""Fields of a Queue's status that count its PodGroups: each a phase in lower case."""

_NORMAL, _WARNING = "Normal", "Warning"


class QueueAction(StrEnum):
    """What Commands ask of a Queue."""

    OPEN_QUEUE = "OpenQueue"
    CLOSE_QUEUE = "CloseQueue"


SHUT = frozenset({QueueState.CLOSING, QueueState.CLOSED})


class Decision(msgspec.Struct, frozen=True):
    """What a Queue's state is to be, and whether it is marked as closed with the one above it."""

    state: str
    is_marked: bool
    told: tuple[Told, ...] = ()


def decide(
    queue: Object, above: Object | None, groups: int, command: Object | None = None
) -> Decision:
    """The state of a Queue.

    ``above`` is its parent if there is one, ``groups`` how many PodGroups are in it, and
    ``command`` the one to be obeyed now.
    """
    state, marked = state_of(queue), is_marked(queue)
    shut = QueueState.CLOSING if groups else QueueState.CLOSED
    told = []
    if command is not None:
        wanted, answer = _obey(queue, above, command)
        told.append(answer)
        if wanted is not None:
            state, marked = (shut if wanted in SHUT else wanted), False
    if is_shut(above):
        if state == QueueState.OPEN:
            told.append(_closed_with(above))
            return Decision(shut, True, tuple(told))
    elif marked and state in SHUT:
        why = "the queue is open again, as the one above it is"
        return Decision(QueueState.OPEN, False, (*told, Told(_NORMAL, QueueAction.OPEN_QUEUE, why)))
    if state in SHUT:
        return Decision(shut, marked, tuple(told))
    return Decision(state, False, tuple(told))


def status_patch(queue: Object, state: str, phases: Mapping[str, int]) -> Object:
    """What is to be changed in a Queue's status: its state, and how many PodGroups are in which
    phase.

    Volcano's definition of Queues takes no status without ``allocated``, which its scheduler
    writes: where that has not, an empty one goes along. In a merge patch that changes no other.
    """
    status = queue.get("status") or {}
    counts = {name: phases.get(name.capitalize(), 0) for name in COUNTERS}
    patch: Object = {name: n for name, n in counts.items() if (status.get(name) or 0) != n}
    if status.get("state") != state:
        patch["state"] = state
    if patch and status.get("allocated") is None:
        patch["allocated"] = {}
    return patch


def is_shut(queue: Object | None) -> bool:
    """Whether there is such a Queue and it is closed, or about to be."""
    return queue is not None and state_of(queue) in SHUT


def is_marked(queue: Object) -> bool:
    """Whether a Queue was closed because the one above it was."""
    annotations = (queue.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(CLOSED_BY_PARENT) == "true")


def _obey(queue: Object, above: Object | None, command: Object) -> tuple[QueueState | None, Told]:
    """The state that a Command asks for, None if nothing comes of it, and what is told."""
    name, action = command["metadata"]["name"], command.get("action") or ""
    uid = (command.get("target") or {}).get("uid")
    asks = f"Command {name} asks for {action or 'nothing'}"
    if uid and uid != queue["metadata"]["uid"]:
        return None, Told(_WARNING, "CommandIssued", f"{asks} of an earlier queue of this name")
    if action == QueueAction.OPEN_QUEUE:
        if is_shut(above):
            assert above is not None
            why = (
                f"{asks}, but the queue above it, {above['metadata']['name']}, is "
                f"{state_of(above)}: open that first"
            )
            return None, Told(_WARNING, action, why)
        wanted = QueueState.OPEN
    elif action == QueueAction.CLOSE_QUEUE:
        if queue["metadata"]["name"] == ROOT:
            why = f"{asks}, but the queue {ROOT} is above all others: close those that are meant"
            return None, Told(_WARNING, action, why)
        wanted = QueueState.CLOSED
    else:
        known = " and ".join(QueueAction)
        return None, Told(_WARNING, "CommandIssued", f"{asks}; queues know {known}")
    because = f": {command['reason']}" if command.get("reason") else ""
    return wanted, Told(_NORMAL, action, f"{asks}{because}")


def _closed_with(above: Object | None) -> Told:
    assert above is not None
    name = above["metadata"]["name"]
    why = f"the queue is closed with the one above it: {name} is {state_of(above)}"
    return Told(_NORMAL, QueueAction.CLOSE_QUEUE, why)
