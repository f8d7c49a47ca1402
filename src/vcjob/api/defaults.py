"""What Jobs and Queues get that leave fields out: rules of Volcano's webhook and of the schema.

Source: admission.md sections 1 and 5; schema defaults: job-api.md section 3. The patch touches
exactly the fields it sets, so that unknown fields of pod templates stay.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from vcjob.api.names import HIERARCHY, HIERARCHY_WEIGHTS
from vcjob.api.problems import Path
from vcjob.api.queues import DEFAULT_QUEUE, ROOT
from vcjob.api.schema.job import JOB
from vcjob.api.schema.types import ListOf, Record
from vcjob.api.types import Object

DEFAULT_SCHEDULER = "volcano"
DEFAULT_MAX_RETRY = 3

Requires = Callable[[str], Sequence[str]]
"""Which plugins the plugin of this name needs beside it (``Registry.requires``)."""


def requires_nothing(_: str) -> Sequence[str]:
    """For whoever has no plugins at hand."""
    return ()


class Operation(msgspec.Struct, frozen=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: Literal["add", "replace"]
    path: str
    value: Any


def default_operations(
    job: Object, scheduler: str = DEFAULT_SCHEDULER, *, requires: Requires = requires_nothing
) -> list[Operation]:
    """The JSON patch that fills in what ``job`` leaves out.

    ``scheduler`` is the name for Jobs that name none; ``requires`` tells which plugins are added
    beside those that the Job names. Fields of a wrong type are left alone: checks complain about
    them. An object without a readable spec gets no patch.
    """
    return list(_operations(copy.deepcopy(job), scheduler, requires))


def apply_defaults(
    job: Object, scheduler: str = DEFAULT_SCHEDULER, *, requires: Requires = requires_nothing
) -> Object:
    """A copy of ``job`` with everything filled in that it leaves out (``default_operations``)."""
    defaulted = copy.deepcopy(job)
    for _ in _operations(defaulted, scheduler, requires):
        pass
    return defaulted


def queue_default_operations(queue: Object) -> list[Operation]:
    """The JSON patch that fills in what a Queue leaves out (admission.md section 5, "Queue")."""
    defaulted = copy.deepcopy(queue)
    operations = [*_hierarchy_operations(defaulted)]
    spec = defaulted.get("spec")
    if spec is None:
        return [*operations, _set(defaulted, (), "spec", {"weight": 1, "reclaimable": True})]
    if not isinstance(spec, dict):
        return operations
    path: Path = ("spec",)
    operations += _set_where_empty(spec, path, "weight", 1)
    if spec.get("reclaimable") is None:
        operations.append(_set(spec, path, "reclaimable", True))
    return operations


def _hierarchy_operations(queue: Object) -> Iterator[Operation]:
    """Begin the annotations of older versions of Volcano at the root."""
    metadata = queue.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict):
        return
    path, weights = annotations.get(HIERARCHY), annotations.get(HIERARCHY_WEIGHTS)
    if not (isinstance(path, str) and path and isinstance(weights, str) and weights):
        return
    if path.split("/")[0] != ROOT:
        where: Path = ("metadata", "annotations")
        yield _set(annotations, where, HIERARCHY, f"{ROOT}/{path}")
        yield _set(annotations, where, HIERARCHY_WEIGHTS, f"1/{weights}")


def _operations(job: Object, scheduler: str, requires: Requires) -> Iterator[Operation]:
    """Fill in the defaults of ``job`` itself, and yield each change."""
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return
    path: Path = ("spec",)
    yield from _set_where_empty(spec, path, "queue", DEFAULT_QUEUE)
    yield from _set_where_empty(spec, path, "schedulerName", scheduler)
    yield from _set_where_empty(spec, path, "maxRetry", DEFAULT_MAX_RETRY)
    tasks = spec.get("tasks")
    if isinstance(tasks, list):
        for index, task in enumerate(tasks):
            if isinstance(task, dict):
                yield from _task_operations(task, (*path, "tasks", index), index)
        if _is_empty(spec.get("minAvailable"), int):
            total = sum(_count(task, "minAvailable") for task in tasks if isinstance(task, dict))
            if spec.get("minAvailable") != total:
                yield _set(spec, path, "minAvailable", total)
    yield from _plugin_operations(spec, path, requires)
    yield from _schema_operations(job, JOB, ())


def _task_operations(task: Object, path: Path, index: int) -> Iterator[Operation]:
    yield from _set_where_empty(task, path, "name", f"default{index}")
    template = task.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    if isinstance(pod, dict) and pod.get("hostNetwork") is True:
        where = (*path, "template", "spec")
        yield from _set_where_empty(pod, where, "dnsPolicy", "ClusterFirstWithHostNet")
    if task.get("minAvailable") is None:
        yield _set(task, path, "minAvailable", _default_task_minimum(task))
    yield from _set_where_empty(task, path, "maxRetry", DEFAULT_MAX_RETRY)


def _default_task_minimum(task: Object) -> int:
    policy = task.get("partitionPolicy")
    if isinstance(policy, dict) and _count(policy, "minPartitions") > 0:
        return _count(policy, "minPartitions") * _count(policy, "partitionSize")
    return _count(task, "replicas")


def _plugin_operations(spec: Object, path: Path, requires: Requires) -> Iterator[Operation]:
    """Add what the plugins need beside them, and what these need in turn."""
    plugins = spec.get("plugins")
    if not isinstance(plugins, dict):
        return
    listed = list(plugins)
    for name in listed:  # grows while it is walked
        for needed in requires(name):
            if needed not in plugins:
                yield _set(plugins, (*path, "plugins"), needed, [])
                listed.append(needed)


def _schema_operations(value: Any, record: Record, path: Path) -> Iterator[Operation]:
    """Defaults that the table of our own kinds names, in the records that are there."""
    if not isinstance(value, dict) or record.keeps_unknown:
        return
    for name, field in record.fields.items():
        where = (*path, name)
        if field.default is not None and value.get(name) is None:
            yield _set(value, path, name, field.default)
        elif isinstance(field.type, Record):
            yield from _schema_operations(value.get(name), field.type, where)
        elif isinstance(field.type, ListOf) and isinstance(field.type.item, Record):
            items = value.get(name)
            for index, item in enumerate(items if isinstance(items, list) else []):
                yield from _schema_operations(item, field.type.item, (*where, index))


def _count(value: Object, key: str) -> int:
    number = value.get(key)
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


def _is_empty(value: Any, kind: type) -> bool:
    """Whether Go would read a value of this type as "not given": null, an empty text, or zero.

    What is empty in another way (a zero where a text belongs) is a mistake, to be told as one.
    """
    return value is None or (type(value) is kind and not value)


def _set_where_empty(value: Object, path: Path, key: str, default: Any) -> Iterator[Operation]:
    if _is_empty(value.get(key), type(default)):
        yield _set(value, path, key, default)


def _set(value: Object, path: Path, key: str, default: Any) -> Operation:
    op: Literal["add", "replace"] = "replace" if key in value else "add"
    value[key] = copy.copy(default)
    pointer = "".join(f"/{_escape(part)}" for part in (*path, key))
    return Operation(op, pointer, copy.copy(default))


def _escape(part: str | int) -> str:
    """A path segment of a JSON pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")
