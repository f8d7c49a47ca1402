"""What must hold for a Queue: amounts that fit each other, a place in the tree of Queues.

Source: admission.md section 5, "Queue". How deep the tree may be is left to whoever schedules.
"""

from collections.abc import Iterator, Mapping

import msgspec

from vcjob.api.defaults import DEFAULT_QUEUE
from vcjob.api.kinds import QUEUE
from vcjob.api.problems import Path, Problem
from vcjob.api.quantity import parse_quantity
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.readable import readable_part
from vcjob.api.schema.support import RECORDS
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.core.checks.queues import ROOT_QUEUE

ALWAYS_THERE = (DEFAULT_QUEUE, ROOT_QUEUE)
"""Queues that cannot be deleted: every Job falls back on them."""

_PARENT = ("spec", "parent")
_GUARANTEE = ("spec", "guarantee", "resource")
_DESERVED = ("spec", "deserved")
_CAPABILITY = ("spec", "capability")
_ASCENDING = ((_GUARANTEE, _DESERVED), (_GUARANTEE, _CAPABILITY), (_DESERVED, _CAPABILITY))


def check_queue(
    queue: Object, queues: Mapping[str, Object] | None, old: Object | None = None
) -> list[Problem]:
    """Every problem of a Queue that is to be created, or changed from ``old``.

    ``queues`` are those that there are, by name; None leaves out the rules that need them.
    """
    fields = [_lenient(problem) for problem in check_fields(queue, RECORDS[QUEUE])]
    readable = readable_part(queue, RECORDS[QUEUE])
    before = None if old is None else _parent(readable_part(old, RECORDS[QUEUE]))
    rules = [*_check_amounts(readable)]
    if queues is not None and before != _parent(readable):
        rules += _check_parent(readable, queues)
    wrong = {problem.path for problem in fields}
    return [*fields, *(problem for problem in rules if problem.path not in wrong)]


def queue_removal_problems(name: str, queues: Mapping[str, Object] | None) -> list[Problem]:
    """Why a Queue must not be deleted; without ``queues`` its children are not known."""
    if name in ALWAYS_THERE:
        return [Problem(f'the queue "{name}" cannot be deleted: every Job needs it')]
    children = sorted(child for child, other in (queues or {}).items() if _parent(other) == name)
    if not children:
        return []
    return [
        Problem(
            f'the queue "{name}" has queues below it',
            hint=f"delete these first: {', '.join(children[:10])}",
        )
    ]


def _lenient(problem: Problem) -> Problem:
    """Queues are the scheduler's, which may know fields that we do not."""
    if problem.message.startswith("unknown field "):
        return msgspec.structs.replace(problem, warning=True)
    return problem


def _check_amounts(queue: Object) -> Iterator[Problem]:
    for lower, upper in _ASCENDING:
        most = _part(queue, upper)
        for resource, amount in _part(queue, lower).items():
            if resource in most and parse_quantity(amount) > parse_quantity(most[resource]):
                yield Problem(
                    f"{amount} {resource} is more than the {most[resource]} of {'.'.join(upper)}",
                    (*lower, resource),
                    "guarantee may be at most deserved, and deserved at most capability",
                )


def _check_parent(queue: Object, queues: Mapping[str, Object]) -> Iterator[Problem]:
    name = (queue.get("metadata") or {}).get("name")
    parent = _parent(queue)
    if not parent or parent == ROOT_QUEUE:
        return
    if parent == name:
        yield Problem("a queue cannot be its own parent", _PARENT)
    elif parent not in queues:
        hint = suggest(parent, queues) or "create the parent first"
        yield Problem(f'there is no queue "{parent}"', _PARENT, hint)
    elif name in _ancestors(parent, queues):
        yield Problem(f'the queue "{parent}" is below this one already', _PARENT)
    elif _has_pods(queues[parent]):
        yield Problem(
            f'the queue "{parent}" has pods of its own and cannot have queues below it',
            _PARENT,
            "wait until its Jobs have ended, or choose another parent",
        )


def _ancestors(name: str, queues: Mapping[str, Object]) -> set[str]:
    found: set[str] = set()
    while name and name not in found:
        found.add(name)
        name = _parent(queues.get(name) or {})
    return found


def _has_pods(queue: Object) -> bool:
    status = queue.get("status") or {}
    return bool(parse_quantity((status.get("allocated") or {}).get("pods") or 0))


def _parent(queue: Object) -> str:
    return (queue.get("spec") or {}).get("parent") or ""


def _part(queue: Object, path: Path) -> Object:
    value: Object = queue
    for key in path:
        value = value.get(key) or {}  # type: ignore[arg-type]
    return value
