"""What a Queue object says of itself: whether it is open, and which queue is above it.

Source: Volcano's documentation, "Queue" and "Hierarchical Queue".
"""

from enum import StrEnum

from vcjob.api.types import Object

ROOT = "root"
"""The queue above all others."""

DEFAULT_QUEUE = "default"
"""The queue of Jobs that name none."""


class QueueState(StrEnum):
    """status.state of a Queue. Unknown stays until somebody says what is wanted."""

    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"


def state_of(queue: Object) -> str:
    """The state of a Queue; one that has none yet is open."""
    return (queue.get("status") or {}).get("state") or QueueState.OPEN


def parent_of(queue: Object) -> str:
    """The name of the queue above one; without another that is the root, which has none."""
    parent = (queue.get("spec") or {}).get("parent")
    return parent or ("" if queue["metadata"]["name"] == ROOT else ROOT)
