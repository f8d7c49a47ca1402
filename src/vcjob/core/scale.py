"""Running a Job with other numbers of pods than its manifest says: ``worker=2``.

The numbers are changed before anything is derived from them, so that defaults, host lists and the
gang follow.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object

_MOST_REPLICAS = 2**31 - 1


class InvalidScaling(VcjobError):
    """A scaling that cannot be read, or that the Job has no task for."""


class Scaled(msgspec.Struct, frozen=True):
    """The Job with its new numbers, and what was changed, a sentence each."""

    job: Object
    changes: tuple[str, ...]


def parse_scalings(texts: Iterable[str]) -> dict[str, int]:
    """Replicas by task from texts such as ``worker=2``; raises InvalidScaling.

    Of two for the same task the last one counts.
    """
    replicas: dict[str, int] = {}
    for text in texts:
        task, equals, number = text.partition("=")
        is_number = number.isascii() and number.isdigit() and len(number) <= 10
        if not task or not equals or not is_number or int(number) > _MOST_REPLICAS:
            raise InvalidScaling(f'"{text}" is not TASK=REPLICAS, for example worker=2')
        replicas[task] = int(number)
    return replicas


def overruled(texts: Iterable[str]) -> list[str]:
    """A sentence for each task that several of these readable texts scale to different numbers."""
    given: dict[str, dict[str, None]] = {}
    for text in texts:
        given.setdefault(text.partition("=")[0], {})[text] = None
    return [f"of {', '.join(own)} the last one counts" for own in given.values() if len(own) > 1]


def task_names(job: Object) -> list[str]:
    """The names of a Job's tasks, as defaulting makes them for tasks without one."""
    return [
        (task.get("name") if isinstance(task, dict) else "") or f"default{place}"
        for place, task in enumerate(_tasks(job))
    ]


def scale(job: Object, replicas: Mapping[str, int]) -> Scaled:
    """The Job with other replicas of some tasks; ``job`` itself stays as it is.

    A minimum (``minAvailable`` of a task or of the Job) that could no longer be reached is lowered
    to what there is. Raises InvalidScaling if the Job has no such task.
    """
    names = task_names(job)
    for name in replicas:
        if name not in names:
            hint = suggest(name, names) or f"it has {len(names)} tasks"
            raise InvalidScaling(f'the Job has no task "{name}" to scale; {hint}')
    changes: list[str] = []
    tasks = [
        _scaled_task(task, replicas[name], name, changes)
        if name in replicas and isinstance(task, dict)
        else task
        for name, task in zip(names, _tasks(job), strict=True)
    ]
    spec = {**job.get("spec", {}), "tasks": tasks}
    total = sum(_number(task.get("replicas")) for task in tasks if isinstance(task, dict))
    least = _number(spec.get("minAvailable"))
    if changes and least > total:
        changes.append(f"the Job starts with {total} instead of {least} pods (minAvailable)")
        spec["minAvailable"] = total
    return Scaled({**job, "spec": spec}, tuple(changes)) if changes else Scaled(job, ())


def _scaled_task(task: Object, replicas: int, name: str, changes: list[str]) -> Object:
    old = _number(task.get("replicas"))
    if old == replicas:
        return task
    changes.append(f'task "{name}" has {replicas} instead of {old} replicas')
    scaled = {**task, "replicas": replicas}
    least = task.get("minAvailable")
    if least is not None and _number(least) > replicas:
        changes.append(f'task "{name}" starts with {replicas} instead of {least} (minAvailable)')
        scaled["minAvailable"] = replicas
    return scaled


def _tasks(job: Object) -> list[Any]:
    """The tasks; what is no object among them, checks complain about."""
    spec = job.get("spec")
    tasks = spec.get("tasks") if isinstance(spec, dict) else None
    return tasks if isinstance(tasks, list) else []


def _number(value: object) -> int:
    """A count as Go reads it: none is 0. What is no number, checks complain about."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
