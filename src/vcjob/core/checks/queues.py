"""What a Job refers to in the cluster: its queue and priority class.

Source: admission.md section 2, rules 15-17.
"""

from collections.abc import Iterator, Mapping

from vcjob.api.problems import Problem
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.core.checks.subject import Lookup, Subject

ROOT_QUEUE = "root"
_QUEUE = ("spec", "queue")


def check_references(subject: Subject, lookup: Lookup) -> Iterator[Problem]:
    """The queue exists, is open and a leaf; the priority class exists (else a warning)."""
    if lookup.queues is not None:
        yield from _check_queue(subject.job.spec.queue, lookup.queues)
    name = subject.job.spec.priority_class_name
    if name and lookup.priority_classes is not None and name not in lookup.priority_classes:
        yield Problem(
            f'there is no PriorityClass "{name}"',
            ("spec", "priorityClassName"),
            suggest(name, lookup.priority_classes) or "pods cannot be made before it exists",
            warning=True,
        )


def _check_queue(name: str, queues: Mapping[str, Object]) -> Iterator[Problem]:
    queue = queues.get(name)
    if queue is None:
        hint = suggest(name, queues)
        yield Problem(f'there is no queue "{name}"', _QUEUE, hint or "create the queue first")
        return
    state = (queue.get("status") or {}).get("state") or "Open"
    if state != "Open":
        yield Problem(
            f'the queue "{name}" is {state} and takes no Jobs', _QUEUE, "choose an open queue"
        )
    children = sorted(
        child
        for child, other in queues.items()
        if (other.get("spec") or {}).get("parent") == name and child != name
    )
    if name == ROOT_QUEUE:
        yield Problem("the root queue takes no Jobs", _QUEUE, "choose a queue below it")
    elif children:
        yield Problem(
            f'the queue "{name}" has queues below it and takes no Jobs itself',
            _QUEUE,
            f"choose one of: {', '.join(children[:10])}",
        )
