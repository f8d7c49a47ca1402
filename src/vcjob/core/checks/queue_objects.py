"""What must hold for a Queue: amounts that fit each other, a state, a place in the tree of Queues.

Source: admission.md section 5, "Queue". How deep the tree may be is left to whoever schedules.
"""

from collections.abc import Iterator, Mapping

import msgspec

from vcjob.api.kinds import QUEUE
from vcjob.api.problems import Problem, errors
from vcjob.api.quantity import parse_quantity
from vcjob.api.queues import DEFAULT_QUEUE, ROOT, QueueState
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.readable import readable_part
from vcjob.api.schema.support import RECORDS
from vcjob.api.types import Object
from vcjob.core.checks.queue_tree import (
    CAPABILITY,
    DESERVED,
    GUARANTEE,
    check_hierarchy,
    check_parent,
    check_tree_amounts,
    children_of,
    parent_of,
    part_of,
    pods_in,
)

ALWAYS_THERE = (DEFAULT_QUEUE, ROOT)
"""Queues that cannot be deleted: every Job falls back on them."""

_ASCENDING = ((GUARANTEE, DESERVED), (GUARANTEE, CAPABILITY), (DESERVED, CAPABILITY))
_IN_TREE = (GUARANTEE, DESERVED, CAPABILITY)
_STATES = (QueueState.OPEN, QueueState.CLOSED)


def check_queue(
    queue: Object, queues: Mapping[str, Object] | None, old: Object | None = None
) -> list[Problem]:
    """Every problem of a Queue that is to be created, or changed from ``old``.

    ``queues`` are those that there are, by name; None leaves out the rules that need them. What is
    wrong with ``old`` already refuses no change of something else.
    """
    problems = _problems(queue, queues, old)
    if old is None or not errors(problems):
        return problems
    had = {(problem.path, problem.message) for problem in _problems(old, queues, None)}
    return [one for one in problems if (one.path, one.message) not in had]


def _problems(
    queue: Object, queues: Mapping[str, Object] | None, old: Object | None
) -> list[Problem]:
    fields = [_lenient(problem) for problem in check_fields(queue, RECORDS[QUEUE])]
    new = readable_part(queue, RECORDS[QUEUE])
    before = None if old is None else readable_part(old, RECORDS[QUEUE])
    rules = [*_check_state(new, before), *_check_amounts(new)]
    if before is None or _annotations(before) != _annotations(new):
        rules += check_hierarchy(new, queues)
    if queues is not None:
        if before is None or parent_of(before) != parent_of(new):
            rules += check_parent(new, queues)
        if before is None or _in_tree(before) != _in_tree(new):
            rules += check_tree_amounts(new, queues)
    wrong = {problem.path for problem in fields}
    return [*fields, *(problem for problem in rules if problem.path not in wrong)]


def queue_removal_problems(name: str, queues: Mapping[str, Object] | None) -> list[Problem]:
    """Why a Queue must not be deleted, or not lightly; without ``queues`` little is known."""
    if name in ALWAYS_THERE:
        return [Problem(f'the queue "{name}" cannot be deleted: every Job needs it')]
    if children := children_of(name, queues or {}):
        return [
            Problem(
                f'the queue "{name}" has queues below it',
                hint=f"delete these first: {', '.join(children[:10])}",
            )
        ]
    if pods := pods_in((queues or {}).get(name) or {}):
        return [
            Problem(
                f'the queue "{name}" still has {pods} pods: they run on, but no pod of their Jobs '
                "is made or started anew until it is there again",
                warning=True,
            )
        ]
    return []


def _lenient(problem: Problem) -> Problem:
    """Queues are the scheduler's, which may know fields that we do not."""
    if problem.message.startswith("unknown field "):
        return msgspec.structs.replace(problem, warning=True)
    return problem


def _check_state(queue: Object, old: Object | None) -> Iterator[Problem]:
    """A state that is asked for; Closing and Unknown are found, by whoever closes queues."""
    state = _state(queue)
    if state and state not in _STATES and (old is None or state != _state(old)):
        yield Problem(
            f'a queue cannot be made "{state}"', ("status", "state"), "it is Open or Closed"
        )


def _check_amounts(queue: Object) -> Iterator[Problem]:
    for lower, upper in _ASCENDING:
        most = part_of(queue, upper)
        for resource, amount in part_of(queue, lower).items():
            if resource in most and parse_quantity(amount) > parse_quantity(most[resource]):
                yield Problem(
                    f"{amount} {resource} is more than the {most[resource]} of {'.'.join(upper)}",
                    (*lower, resource),
                    "guarantee may be at most deserved, and deserved at most capability",
                )


def _state(queue: Object) -> str:
    return (queue.get("status") or {}).get("state") or ""


def _annotations(queue: Object) -> Object:
    return (queue.get("metadata") or {}).get("annotations") or {}


def _in_tree(queue: Object) -> tuple[object, ...]:
    return parent_of(queue), *(part_of(queue, path) for path in _IN_TREE)
