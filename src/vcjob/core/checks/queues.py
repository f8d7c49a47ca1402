"""What a Job refers to in the cluster: its queue and priority classes.

Source: admission.md section 2, rules 15-17.
"""

from collections.abc import Iterator, Mapping

from vcjob.api.problems import Path, Problem
from vcjob.api.queues import ROOT, QueueState, state_of
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.core.checks.subject import Lookup, Subject
from vcjob.core.scheduling.priorities import BUILT_IN

_QUEUE = ("spec", "queue")


def check_references(subject: Subject, lookup: Lookup) -> Iterator[Problem]:
    """The queue exists, is open and a leaf; priority classes exist (else a warning)."""
    if lookup.queues is not None:
        yield from _check_queue(subject.job.spec.queue, lookup.queues)
    if lookup.priority_classes is None:
        return
    for path, name in _classes(subject):
        if name not in lookup.priority_classes and name not in BUILT_IN:
            yield Problem(
                f'there is no PriorityClass "{name}"',
                path,
                suggest(name, lookup.priority_classes) or "pods cannot be made before it exists",
                warning=True,
            )


def _classes(subject: Subject) -> Iterator[tuple[Path, str]]:
    """The PriorityClasses that the Job and its pod templates name, and where."""
    if name := subject.job.spec.priority_class_name:
        yield ("spec", "priorityClassName"), name
    for index, task in enumerate(subject.job.spec.tasks):
        spec = task.template.get("spec")
        named = spec.get("priorityClassName") if isinstance(spec, dict) else None
        if named and isinstance(named, str):
            yield ("spec", "tasks", index, "template", "spec", "priorityClassName"), named


def _check_queue(name: str, queues: Mapping[str, Object]) -> Iterator[Problem]:
    queue = queues.get(name)
    if queue is None:
        hint = suggest(name, queues)
        yield Problem(f'there is no queue "{name}"', _QUEUE, hint or "create the queue first")
        return
    if (state := state_of(queue)) != QueueState.OPEN:
        yield Problem(
            f'the queue "{name}" is {state} and takes no Jobs', _QUEUE, "choose an open queue"
        )
    children = sorted(
        child
        for child, other in queues.items()
        if (other.get("spec") or {}).get("parent") == name and child != name
    )
    if name == ROOT:
        yield Problem("the root queue takes no Jobs", _QUEUE, "choose a queue below it")
    elif children:
        yield Problem(
            f'the queue "{name}" has queues below it and takes no Jobs itself',
            _QUEUE,
            f"choose one of: {', '.join(children[:10])}",
        )
