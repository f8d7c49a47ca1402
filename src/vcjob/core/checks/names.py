"""Names are checked for what they become: pods, labels, volumes, for the largest index.

Volcano checks the pod's name only for the task's position; a job with more replicas than that
fails later, when pods are refused (user case P3). docs/compatibility.md row 10. What plugins make
of names is in ``plugins.py``.
"""

from collections.abc import Iterator

from vcjob.api.names import pod_name
from vcjob.api.problems import Path, Problem
from vcjob.api.validation import LABEL_LENGTH, dns_1123_label
from vcjob.core.checks.subject import GENERATED_SUFFIX, Subject

# How long the suffix of a claim's volume is: <job>-<12 characters>.
_CLAIM_VOLUME_SUFFIX = "-" + 12 * "0"


def largest_index(replicas: int, position: int) -> int:
    """The largest number that a pod's name of the task at ``position`` ends with.

    Volcano asks that a pod name with the task's position is valid, so ours asks that too.
    """
    return max(replicas - 1, position)


def check_names(subject: Subject) -> Iterator[Problem]:
    """The Job's name and, for each task, the name of its last pod."""
    name = subject.job.metadata.name
    generated = (
        subject.job.metadata.name
        == subject.object.get("metadata", {}).get("generateName", "") + GENERATED_SUFFIX
    )
    path: Path = ("metadata", "generateName" if generated else "name")
    if not name:
        if "metadata" in subject.object:
            yield Problem("metadata lacks the name", ("metadata", "name"), "add name: my-job")
        return
    if len(name) > LABEL_LENGTH:
        yield Problem(
            f"the Job's name has {len(name)} characters, but becomes a label of its pods, which "
            f"may have {LABEL_LENGTH}",
            path,
            f"shorten it by {len(name) - LABEL_LENGTH} characters or more",
        )
        return
    if subject.job.spec.volumes and (wrong := dns_1123_label(f"{name}{_CLAIM_VOLUME_SUFFIX}")):
        yield Problem(
            f"for spec.volumes, pods get volumes named {name}-<12 characters>, whose names must "
            f"{wrong}",
            path,
            f"take a name without dots and with at most "
            f"{LABEL_LENGTH - len(_CLAIM_VOLUME_SUFFIX)} characters",
        )
    yield from _check_queue_label(subject)
    yield from _check_pod_names(subject, name)


def _check_queue_label(subject: Subject) -> Iterator[Problem]:
    queue = subject.job.spec.queue
    if len(queue) > LABEL_LENGTH:
        yield Problem(
            f"the queue's name has {len(queue)} characters, but becomes a label of the pods, "
            f"which may have {LABEL_LENGTH}",
            ("spec", "queue"),
            "use a queue with a shorter name",
        )


def _check_pod_names(subject: Subject, name: str) -> Iterator[Problem]:
    for position, task in enumerate(subject.job.spec.tasks):
        if len(task.name) > LABEL_LENGTH:
            continue  # the bound of the field says that already
        last = pod_name(name, task.name, largest_index(task.replicas, position))
        if len(last) > LABEL_LENGTH:
            yield Problem(
                f"pods of this task are named up to {last}, which has {len(last)} characters; "
                f"{LABEL_LENGTH} are allowed",
                ("spec", "tasks", position, "name"),
                f"shorten the name of the Job or of the task by {len(last) - LABEL_LENGTH} "
                "characters or more",
            )
