"""From a task's template to its pods. Source: job-api.md section 5.

A ``PodFactory`` is made once for a task; a pod then costs only what is its own. What pods have in
common they share, and nobody may change it.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from vcjob.api import names
from vcjob.api.kinds import POD
from vcjob.api.quantity import InvalidQuantity, Quantity
from vcjob.api.types import Job, MalformedObject, Object, Task
from vcjob.core.claims import Claim, add_claims
from vcjob.plugins.base import AddToPod
from vcjob.plugins.draft import PodDraft

NAMELESS_TASK = "default"
_COPIED_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_DISRUPTION_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)


class PodFactory:
    """Makes the pods of one task."""

    def __init__(
        self,
        job: Job,
        task: Task,
        owner: Object,
        claims: list[Claim],
        add_to_pod: Sequence[AddToPod],
        *,
        forwarding: bool = False,
    ) -> None:
        """Prepare what all pods of the task share; raises MalformedObject.

        ``owner`` is the owner reference to the Job; ``add_to_pod`` are the plugins' additions, in
        order; ``forwarding`` marks pods of a queue that is spread over several clusters.
        """
        self._job = job
        self._task = task
        self._owners = [owner]
        self._add_to_pod = add_to_pod
        self._spec = _template_spec(job, task)
        add_claims(self._spec, job.metadata.name, claims)
        self._labels = _labels(job, task, forwarding)
        self._annotations = _annotations(job, task, forwarding)

    @property
    def spec(self) -> Object:
        """The pod spec before plugins add to it."""
        return self._spec

    def pod(self, index: int, version: int, retry_count: int) -> Object:
        """The pod of one replica, for a version of the Job and a number of retries."""
        labels = {**self._labels, names.TASK_INDEX: str(index)}
        policy = self._task.partition_policy
        if policy:
            size = policy.partition_size
            labels[names.PARTITION_ID] = str(index // size if size > 0 else 0)
        annotations = {
            **self._annotations,
            names.TASK_INDEX: str(index),
            names.JOB_VERSION: str(version),
            names.JOB_RETRY_COUNT: str(retry_count),
        }
        name = names.pod_name(self._job.metadata.name, self._task.name, index)
        draft = PodDraft(name, self._task.name, index, self._spec, labels, annotations)
        for add in self._add_to_pod:
            add(draft)
        return {
            "apiVersion": POD.api_version,
            "kind": POD.kind,
            "metadata": {
                "name": name,
                "namespace": self._job.metadata.namespace,
                "labels": draft.labels,
                "annotations": draft.annotations,
                "ownerReferences": self._owners,
            },
            "spec": draft.finished_spec(),
        }


def copied_labels(job: Job) -> dict[str, str]:
    """Labels of the Job that its user wants on the pods too (user case P33)."""
    return {
        key: job.metadata.labels[key]
        for key in wanted_labels(job)
        if key in job.metadata.labels and not key.startswith(names.VOLCANO_PREFIX)
    }


def wanted_labels(job: Job) -> list[str]:
    """The keys of labels that the Job's annotation asks to copy."""
    return names.listed(job.metadata.annotations.get(names.COPY_LABELS, ""))


def _labels(job: Job, task: Task, forwarding: bool) -> dict[str, str]:
    labels = {
        **copied_labels(job),
        **_texts(task, "labels"),
        names.JOB_NAME: job.metadata.name,
        names.TASK_SPEC: task.name or NAMELESS_TASK,
        names.JOB_NAMESPACE: job.metadata.namespace,
        names.QUEUE_NAME: job.spec.queue,
    }
    labels.update(_present(job.metadata.labels, _COPIED_LABELS))
    if forwarding:
        labels[names.JOB_FORWARDING] = "true"
    return labels


def _annotations(job: Job, task: Task, forwarding: bool) -> dict[str, str]:
    annotations = {
        **_texts(task, "annotations"),
        names.TASK_SPEC: task.name or NAMELESS_TASK,
        names.GROUP_NAME: names.pod_group_name(job.metadata.name, job.metadata.uid),
        names.JOB_NAME: job.metadata.name,
        names.QUEUE_NAME: job.spec.queue,
        names.TEMPLATE_UID: f"{job.metadata.name}-{task.name}",
    }
    annotations.pop(names.OUT_OF_SYNC, None)  # of a pod that was copied: each would be deleted
    if task.topology_policy:
        annotations[names.NUMA_TOPOLOGY_POLICY] = task.topology_policy
    annotations.update(_present(job.metadata.annotations, _COPIED_ANNOTATIONS))
    budgets = _present(job.metadata.annotations, _DISRUPTION_BUDGETS)
    annotations.update(list(budgets.items())[:1])
    if forwarding:
        annotations[names.JOB_FORWARDING] = "true"
    return annotations


def _present(values: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    return {key: values[key] for key in keys if key in values}


def _texts(task: Task, field: str) -> dict[str, str]:
    """Labels or annotations of a task's template."""
    values = _object(task.template.get("metadata"), task, "metadata").get(field)
    texts = _object(values, task, f"metadata.{field}")
    if not all(isinstance(value, str) for value in texts.values()):
        raise _malformed(task, f"metadata.{field}", "must have texts as values")
    return texts


def _template_spec(job: Job, task: Task) -> Object:
    """A copy of the template's pod spec with what the Job adds to each task."""
    spec = copy.deepcopy(_object(task.template.get("spec"), task, "spec"))
    for group in ("containers", "initContainers"):
        for position, container in enumerate(_objects(spec, group, task)):
            where = f"spec.{group}[{position}]"
            for field in ("env", "volumeMounts", "ports"):
                _objects(container, field, task, where)
            _write_amounts(container, task, where)
    _objects(spec, "volumes", task)
    _write_amounts(spec, task, "spec")
    if overhead := spec.get("overhead"):
        spec["overhead"] = _amounts(overhead, task, "spec.overhead")
    if job.spec.scheduler_name and not spec.get("schedulerName"):
        spec["schedulerName"] = job.spec.scheduler_name
    if job.spec.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.spec.priority_class_name
    return spec


def _write_amounts(owner: Object, task: Task, where: str) -> None:
    """Write resource amounts as an API server stores them, so that pods compare equal to theirs."""
    resources = _object(owner.get("resources"), task, f"{where}.resources")
    for kind in ("requests", "limits"):
        if resources.get(kind):
            resources[kind] = _amounts(resources[kind], task, f"{where}.resources.{kind}")


def _amounts(amounts: Any, task: Task, where: str) -> dict[str, str]:
    try:
        return {
            name: str(Quantity.of(amount)) for name, amount in _object(amounts, task, where).items()
        }
    except InvalidQuantity as error:
        raise _malformed(task, where, str(error)) from error


def _object(value: Any, task: Task, where: str) -> Object:
    if value is not None and not isinstance(value, dict):
        raise _malformed(task, where, "must be an object")
    return value or {}


def _objects(owner: Object, field: str, task: Task, where: str = "spec") -> list[Object]:
    value = owner.get(field)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _malformed(task, f"{where}.{field}", "must be a list of objects")
    return value


def _malformed(task: Task, where: str, what: str) -> MalformedObject:
    return MalformedObject(f'the template of task "{task.name}": {where} {what}')
