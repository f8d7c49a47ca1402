"""What must hold for a Queue's place in the tree of Queues: its parent, and amounts up and down.

Of a resource that a Queue does not name there is no limit. Source: admission.md section 5, "Queue";
Volcano's documentation, "Hierarchical Queue".
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, cast

from vcjob.api.names import HIERARCHY, HIERARCHY_WEIGHTS
from vcjob.api.problems import Path, Problem, format_path
from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.queues import ROOT
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.core.scheduling.amounts import Amounts, add, beyond, listed

PARENT = ("spec", "parent")
GUARANTEE = ("spec", "guarantee", "resource")
DESERVED = ("spec", "deserved")
CAPABILITY = ("spec", "capability")


def check_parent(queue: Object, queues: Mapping[str, Object]) -> Iterator[Problem]:
    """The parent exists, is not below the Queue itself, and takes Queues."""
    name, parent = _name(queue), parent_of(queue)
    if not parent or parent == ROOT:
        return
    if parent == name:
        yield Problem("a queue cannot be its own parent", PARENT)
    elif parent not in queues:
        hint = suggest(parent, queues) or "create the parent first"
        yield Problem(f'there is no queue "{parent}"', PARENT, hint)
    elif name in _ancestors(parent, queues):
        yield Problem(f'the queue "{parent}" is below this one already', PARENT)
    elif pods_in(queues[parent]) and not children_of(parent, queues):
        yield Problem(
            f'the queue "{parent}" has pods of its own and cannot have queues below it',
            PARENT,
            "wait until its Jobs have ended, or choose another parent",
        )


def check_tree_amounts(queue: Object, queues: Mapping[str, Object]) -> Iterator[Problem]:
    """No Queue may use more than the one above it; what is kept for several fits there together."""
    name, parent = _name(queue), parent_of(queue)
    if parent and parent not in (ROOT, name) and parent in queues:
        siblings = [queues[one] for one in children_of(parent, queues) if one != name]
        upper = queues[parent]
        yield from _too_much(queue, upper, CAPABILITY, f'queue "{parent}"')
        for path in (GUARANTEE, DESERVED):
            yield from _too_much_together(upper, [queue, *siblings], path, f'queue "{parent}"')
    if name == ROOT:
        return
    children = {one: queues[one] for one in children_of(name, queues)}
    for child, other in children.items():
        yield from _too_much(other, queue, CAPABILITY, "this queue", f'queue "{child}" below it')
    for path in (GUARANTEE, DESERVED):
        yield from _too_much_together(queue, [*children.values()], path, "this queue")


def check_hierarchy(queue: Object, queues: Mapping[str, Object] | None) -> Iterator[Problem]:
    """The annotations by which older versions of Volcano place a Queue: one weight a step."""
    path, weights = _annotation(queue, HIERARCHY), _annotation(queue, HIERARCHY_WEIGHTS)
    where = ("metadata", "annotations")
    if not path and not weights:
        return
    steps = weights.split("/")
    if len(steps) != len(path.split("/")):
        yield Problem(
            f"{HIERARCHY} has {len(path.split('/'))} steps and {HIERARCHY_WEIGHTS} has "
            f"{len(steps)}: they must have as many",
            (*where, HIERARCHY_WEIGHTS),
        )
        return
    for weight in steps:
        if not _is_positive(weight):
            yield Problem(
                f"{weight!r} is no weight: it must be a number above 0",
                (*where, HIERARCHY_WEIGHTS),
            )
            return
    for other, known in sorted((queues or {}).items()):
        if other != _name(queue) and _annotation(known, HIERARCHY).startswith(f"{path}/"):
            yield Problem(
                f'the queue "{other}" is below this one: {_annotation(known, HIERARCHY)}',
                (*where, HIERARCHY),
                "only the ends of the tree are queues by this annotation",
            )
            return


def children_of(name: str, queues: Mapping[str, Object]) -> list[str]:
    """The names of the Queues right below one."""
    return sorted(child for child, other in queues.items() if parent_of(other) == name)


def parent_of(queue: Object) -> str:
    """The name of the Queue above one; empty if none is named."""
    return (queue.get("spec") or {}).get("parent") or ""


def pods_in(queue: Object) -> int:
    """How many pods have room in a Queue, as its status tells."""
    allocated = ((queue.get("status") or {}).get("allocated") or {}).get("pods")
    return int(_parsed(allocated))


def part_of(queue: Object, path: Path) -> Object:
    """A resource list of a Queue; empty if there is none."""
    value: Any = queue
    for key in path:
        value = value.get(key) or {}
    return cast(Object, value)


def _too_much(
    lower: Object, upper: Object, path: Path, above: str, below: str = ""
) -> Iterator[Problem]:
    wanted, limit = _amounts(lower, path), _amounts(upper, path)
    for resource in beyond(wanted, limit, missing_is_none=False):
        whose = f"{below} may have " if below else ""
        at = (*path, resource) if not below or resource in part_of(upper, path) else path
        yield Problem(
            f"{whose}{listed(wanted, [resource])}, more than the {listed(limit, [resource])} of "
            f"{above}",
            at,
        )


def _too_much_together(
    upper: Object, lower: list[Object], path: Path, above: str
) -> Iterator[Problem]:
    total: dict[str, Fraction] = {}
    for one in lower:
        add(total, _amounts(one, path))
    limited = path if part_of(upper, path) else CAPABILITY
    limit = _amounts(upper, limited)
    for resource in beyond(total, limit, missing_is_none=False):
        yield Problem(
            f"the queues below {above} have {listed(total, [resource])} in {format_path(path)} "
            f"together, more than its {listed(limit, [resource])} of {format_path(limited)}",
            path,
        )


def _amounts(queue: Object, path: Path) -> Amounts:
    return {name: _parsed(amount) for name, amount in part_of(queue, path).items()}


def _parsed(amount: Any) -> Fraction:
    """An amount; what is no quantity counts for nothing, as field checks complain about it."""
    try:
        return parse_quantity(amount or 0)
    except InvalidQuantity:
        return Fraction(0)


def _is_positive(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def _ancestors(name: str, queues: Mapping[str, Object]) -> set[str]:
    found: set[str] = set()
    while name and name not in found:
        found.add(name)
        name = parent_of(queues.get(name) or {})
    return found


def _annotation(queue: Object, name: str) -> str:
    value = ((queue.get("metadata") or {}).get("annotations") or {}).get(name)
    return value if isinstance(value, str) else ""


def _name(queue: Object) -> str:
    return (queue.get("metadata") or {}).get("name") or ""
