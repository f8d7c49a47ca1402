"""What may change in a Job that exists: admission.md section 4."""

import copy
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from vcjob.api.problems import Path, Problem, format_path
from vcjob.api.quantity import InvalidQuantity, parse_quantity
from vcjob.api.schema.job import JOB
from vcjob.api.schema.types import ANYTHING, ListOf, MapOf, Quantity, Record, Type
from vcjob.api.types import Object
from vcjob.core.checks.subject import Subject

_MAY_CHANGE = (
    "only minAvailable, priorityClassName and replicas and minAvailable of tasks may change; for "
    "anything else delete the Job and create it again"
)


def check_changes(old: Subject, new: Subject) -> Iterator[Problem]:
    """A problem for each part of spec that differs although it is fixed."""
    before, after = len(old.tasks), len(new.tasks)
    if before != after:
        yield Problem(
            f"the Job has {before} tasks, but the update has {after}",
            ("spec", "tasks"),
            "tasks cannot be added or removed; delete the Job and create it again",
        )
        return
    old_spec, new_spec = _fixed_part(old.object), _fixed_part(new.object)
    for path in _differences(old_spec, new_spec, JOB.fields["spec"].type, ("spec",)):
        yield Problem(f"{format_path(path)} cannot be changed", path, _MAY_CHANGE)


def _fixed_part(job: Object) -> Object:
    """spec without what may change."""
    spec = copy.deepcopy(job.get("spec", {}))
    for key in ("minAvailable", "priorityClassName"):
        spec.pop(key, None)
    for task in spec.get("tasks", []):
        for key in ("replicas", "minAvailable"):
            task.pop(key, None)
    for volume in spec.get("volumes", []):
        # The controller writes the name of a claim that it made.
        if "volumeClaim" in volume:
            volume.pop("volumeClaimName", None)
    return dict(spec)


def _differences(old: Any, new: Any, kind: Type, path: Path) -> Iterator[Path]:
    """The outermost parts that differ in meaning: empty is like absent, 1000m is 1."""
    if _is_nothing(old) and _is_nothing(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            inner = _type_of_part(kind, key)
            if isinstance(kind, MapOf) and (key in old) != (key in new):
                yield (*path, key)  # a plugin without arguments is not the same as none
            else:
                yield from _differences(old.get(key), new.get(key), inner, (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        inner = kind.item if isinstance(kind, ListOf) else ANYTHING
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, inner, (*path, index))
    elif isinstance(kind, Quantity):
        if _amount(old) != _amount(new):
            yield path
    elif old != new:
        yield path


def _type_of_part(kind: Type, key: str) -> Type:
    if isinstance(kind, Record) and key in kind.fields:
        return kind.fields[key].type
    return kind.value if isinstance(kind, MapOf) else ANYTHING


def _is_nothing(value: Any) -> bool:
    return value is None or value in ("", [], {}) or value is False


def _amount(value: Any) -> Fraction | str:
    try:
        return Fraction(parse_quantity(str(value)))
    except InvalidQuantity:
        return str(value)
