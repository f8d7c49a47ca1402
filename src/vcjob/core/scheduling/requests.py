"""What objects request of this machine: amounts by resource, without what only says the same
again for quotas."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from vcjob.api.kinds import QUEUE
from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.queues import QueueState, parent_of, state_of
from vcjob.api.types import Object, all_containers
from vcjob.core.scheduling.amounts import NOTHING, Amounts
from vcjob.core.scheduling.gangs import QueueLimits
from vcjob.core.usage import pod_usage

_OF_QUOTAS = ("requests.", "limits.", "count/")


def amounts_of(resources: Mapping[str, Any] | None) -> Amounts:
    """The amounts of a resource list; one that is no quantity counts for nothing."""
    amounts: dict[str, Fraction] = {}
    for name, text in (resources or {}).items():
        if _counts(name):
            try:
                amounts[name] = parse_quantity(text)
            except InvalidQuantity:
                continue  # admission refuses it
    return amounts


def pod_requests(spec: Object) -> Amounts:
    """What one pod requests."""
    if not any(one.get("resources") for one in (*all_containers(spec), spec)) and not spec.get(
        "overhead"
    ):
        return NOTHING  # most pods of a laptop, spared the arithmetic
    try:
        usage = pod_usage(spec)
    except InvalidQuantity:
        return NOTHING  # admission refuses it
    return {name: quantity.value for name, quantity in usage.items() if _counts(name)}


def queue_limits(queue: Object) -> QueueLimits:
    """What a Queue object says about admission."""
    spec = queue.get("spec") or {}
    return QueueLimits(
        queue["metadata"]["name"],
        parent=parent_of(queue),
        capability=amounts_of(spec.get("capability")),
        priority=spec.get("priority") or 0,
        weight=spec.get("weight") or 1,
        is_open=state_of(queue) == QueueState.OPEN,
        strict_order=spec.get("dequeueStrategy") == "fifo",
    )


def note_limits(known: dict[str, QueueLimits], queue: Object, *, gone: bool) -> bool:
    """Enter into ``known`` what a Queue says about admission now; whether that is news.

    A Queue also changes with what is counted in its status.
    """
    name = queue["metadata"]["name"]
    limits = None if gone else queue_limits(queue)
    if limits == known.get(name):
        return False
    if limits is None:
        del known[name]
    else:
        known[name] = limits
    return True


def new_queue(name: str, spec: Object) -> Object:
    """A Queue object."""
    return {
        "apiVersion": QUEUE.api_version,
        "kind": QUEUE.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _counts(name: str) -> bool:
    return name != "pods" and not name.startswith(_OF_QUOTAS)
