"""The PodGroup of a Job: how many pods must be placeable together, and what they need.

Source: job-api.md section 6, lifecycle.md section 11.
"""

from collections.abc import Collection, Mapping, Sequence

from vcjob.api.kinds import POD_GROUP
from vcjob.api.names import PARTITION_ID, TASK_SPEC, pod_group_name
from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Job, NetworkTopology, Object, Task
from vcjob.core.usage import Amounts, add


def pod_group(
    job: Job,
    owner: Object,
    usage: Mapping[str, Amounts],
    priorities: Mapping[str, int],
    waiting: Collection[str] = (),
) -> Object:
    """The PodGroup that ``job`` wants.

    ``usage`` is what one pod of each task needs; ``priorities`` are the values of PriorityClasses
    by name. Tasks in ``waiting`` do not count: it is not their turn yet (docs/compatibility.md
    row 12).
    """
    tasks = [task for task in job.spec.tasks if task.name not in waiting]
    left_out = sum(task_minimum(task) for task in job.spec.tasks if task.name in waiting)
    minimum = max(job.spec.min_available - left_out, 0)
    spec: Object = {
        "minTaskMember": {task.name: task_minimum(task) for task in tasks},
        "minResources": _least_resources(tasks, minimum, usage, priorities),
        "queue": job.spec.queue or DEFAULT_QUEUE,
    }
    if minimum:
        spec["minMember"] = minimum
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if job.spec.network_topology:
        spec["networkTopology"] = _topology(job.spec.network_topology)
    if policies := [_sub_group(task) for task in tasks if task.partition_policy]:
        spec["subGroupPolicy"] = policies
    metadata: Object = {
        "name": pod_group_name(job.metadata.name, job.metadata.uid),
        "namespace": job.metadata.namespace,
        "ownerReferences": [owner],
    }
    if job.metadata.labels:
        metadata["labels"] = dict(job.metadata.labels)
    if job.metadata.annotations:
        metadata["annotations"] = dict(job.metadata.annotations)
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.kind,
        "metadata": metadata,
        "spec": spec,
    }


def task_minimum(task: Task) -> int:
    """How many pods of a task must be placeable."""
    if task.min_available is not None:
        return task.min_available
    policy = task.partition_policy
    if policy and policy.min_partitions and policy.partition_size:
        return policy.min_partitions * policy.partition_size
    return task.replicas


def _topology(topology: NetworkTopology) -> Object:
    shown: Object = {"mode": topology.mode}
    if topology.highest_tier_allowed is not None:
        shown["highestTierAllowed"] = topology.highest_tier_allowed
    elif topology.highest_tier_name:
        shown["highestTierName"] = topology.highest_tier_name
    return shown


def _sub_group(task: Task) -> Object:
    policy = task.partition_policy
    assert policy
    group: Object = {
        "name": task.name,
        "subGroupSize": policy.partition_size,
        "labelSelector": {"matchLabels": {TASK_SPEC: task.name}},
        "matchLabelKeys": [PARTITION_ID],
    }
    if policy.min_partitions:
        group["minSubGroups"] = policy.min_partitions
    if policy.network_topology:
        group["networkTopology"] = _topology(policy.network_topology)
    return group


def minimum_pods(
    tasks: Sequence[Task], minimum: int, priorities: Mapping[str, int]
) -> dict[str, int]:
    """Of which task how many pods make up the minimum of a gang; tasks of none are left out.

    ``priorities`` are values of PriorityClasses by name.
    """
    by_priority = sorted(tasks, key=lambda task: -priorities.get(_priority_class(task), 0))
    left = minimum
    taken: dict[str, int] = {}

    def take(task: Task, most: int) -> None:
        nonlocal left
        count = min(most, left)
        if count <= 0:
            return
        taken[task.name] = taken.get(task.name, 0) + count
        left -= count

    if minimum >= sum(
        task.replicas if task.min_available is None else task.min_available for task in tasks
    ):
        for task in by_priority:
            if task.min_available is not None:
                take(task, task.min_available)
    for task in by_priority:
        take(task, task.replicas - taken.get(task.name, 0))
    return taken


def _least_resources(
    tasks: Sequence[Task],
    minimum: int,
    usage: Mapping[str, Amounts],
    priorities: Mapping[str, int],
) -> dict[str, str]:
    total: Amounts = {}
    for name, count in minimum_pods(tasks, minimum, priorities).items():
        add(total, usage[name], count)
    return {name: str(amount) for name, amount in sorted(total.items())}


def _priority_class(task: Task) -> str:
    spec = task.template.get("spec") or {}
    name: str = spec.get("priorityClassName") or ""
    return name
