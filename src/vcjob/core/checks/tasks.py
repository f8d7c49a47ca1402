"""Tasks: that there are some, their names and numbers, partitions, NUMA, order of start.

Source: admission.md section 2, rules 1, 3-5, 9, 10, 12, 18.
"""

from collections.abc import Iterator
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter

from vcjob.api.problems import Path, Problem
from vcjob.api.quantity import parse_quantity
from vcjob.api.suggestions import suggest
from vcjob.api.types import NetworkTopology, Object, Task
from vcjob.core.checks.subject import Subject

_TASKS: Path = ("spec", "tasks")


def check_tasks(subject: Subject, *, exists: bool = False) -> Iterator[Problem]:
    """All rules about tasks, but those of names, policies and templates.

    ``exists``: the Job is there already, so that only its numbers can be changed.
    """
    spec = subject.object.get("spec")
    if isinstance(spec, dict) and "tasks" not in spec and subject.counts_known:
        yield Problem("the Job has no tasks", _TASKS, "spec.tasks needs at least one task")
        return
    yield from _check_distinct_names(subject)
    if subject.counts_known:
        yield from _check_minimums(subject)
    yield from check_topologies(subject)
    for index, task in enumerate(subject.job.spec.tasks):
        yield from check_partition_policy(task, (*_TASKS, index), exists=exists)
        yield from _check_numa(task, subject.tasks[index], (*_TASKS, index))
    yield from _check_dependencies(subject)


def _check_distinct_names(subject: Subject) -> Iterator[Problem]:
    first_of: dict[str, int] = {}
    for index, task in enumerate(subject.job.spec.tasks):
        first = first_of.setdefault(task.name, index)
        if first != index:
            yield Problem(
                f'tasks[{index}] has the name "{task.name}", but so has tasks[{first}]',
                (*_TASKS, index, "name"),
                "names of tasks become names of pods; give each task its own",
            )


def _check_minimums(subject: Subject) -> Iterator[Problem]:
    spec = subject.job.spec
    told = False
    for index, task in enumerate(spec.tasks):
        if task.min_available is not None and task.min_available > task.replicas:
            told = True
            yield Problem(
                f'task "{task.name}" needs minAvailable {task.min_available} pods, but replicas '
                f"makes only {task.replicas}",
                (*_TASKS, index, "minAvailable"),
                f"lower minAvailable to at most {task.replicas} or raise replicas",
            )
    total = sum(task.replicas for task in spec.tasks)
    if told and spec.min_available == sum(task.min_available or 0 for task in spec.tasks):
        return  # the sum is wrong only because a task is
    if spec.min_available > total:
        yield Problem(
            f"the Job needs minAvailable {spec.min_available} pods, but all tasks together make "
            f"only {total}",
            ("spec", "minAvailable"),
            f"lower minAvailable to at most {total} or raise replicas of a task",
        )
    if total and spec.min_success is not None and spec.min_success > total:
        yield Problem(
            f"minSuccess {spec.min_success} is never reached, so the Job fails: all tasks together "
            f"make only {total}",
            ("spec", "minSuccess"),
            f"lower minSuccess to at most {total} or raise replicas of a task",
            warning=True,
        )


def check_topologies(subject: Subject) -> Iterator[Problem]:
    """networkTopology of the job and of partition policies: one way to name the tier."""
    spec = subject.job.spec
    yield from _check_topology(spec.network_topology, ("spec", "networkTopology"))
    for index, task in enumerate(spec.tasks):
        if task.partition_policy:
            path = (*_TASKS, index, "partitionPolicy", "networkTopology")
            yield from _check_topology(task.partition_policy.network_topology, path)


def _check_topology(topology: NetworkTopology | None, path: Path) -> Iterator[Problem]:
    if topology and topology.highest_tier_allowed is not None and topology.highest_tier_name:
        yield Problem(
            "networkTopology gives both highestTierAllowed and highestTierName",
            path,
            "give only one of the two",
        )


def check_partition_policy(task: Task, path: Path, *, exists: bool = False) -> Iterator[Problem]:
    """Replicas must be all partitions together, and the minimum whole partitions."""
    policy = task.partition_policy
    if not policy or policy.total_partitions <= 0 or policy.partition_size <= 0:
        return  # the bounds of the fields say that already
    product = policy.total_partitions * policy.partition_size
    if task.replicas != product:
        yield Problem(
            f'task "{task.name}" has replicas {task.replicas}, but {policy.total_partitions} '
            f"partitions of {policy.partition_size} pods make {product}",
            (*path, "replicas"),
            "such a task cannot be scaled; delete the Job and create it again"
            if exists
            else "replicas must be totalPartitions times partitionSize",
        )
        return
    minimum = policy.min_partitions * policy.partition_size
    if policy.min_partitions > 0 and task.min_available not in (None, minimum):
        yield Problem(
            f'task "{task.name}" has minAvailable {task.min_available}, but '
            f"{policy.min_partitions} partitions of {policy.partition_size} pods make {minimum}",
            (*path, "minAvailable"),
            f"leave minAvailable out or set it to {minimum}",
        )


def _check_numa(task: Task, task_object: Object, path: Path) -> Iterator[Problem]:
    """A NUMA policy works on whole CPUs."""
    if task.topology_policy in ("", "none"):
        return
    pod = task_object.get("template", {}).get("spec", {})
    for group in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(group, [])):
            resources = container.get("resources", {})
            requests = resources.get("requests") or resources.get("limits") or {}
            cpu = Fraction(parse_quantity(str(requests.get("cpu", "0"))))
            if cpu <= 0 or cpu.denominator != 1:
                shown = requests.get("cpu", "none")
                yield Problem(
                    f"topologyPolicy {task.topology_policy} needs a whole number of CPUs in every "
                    f"container, but {group}[{index}] requests {shown}",
                    (*path, "template", "spec", group, index),
                    'set resources.requests.cpu to a whole number such as "2"',
                )


def _check_dependencies(subject: Subject) -> Iterator[Problem]:
    tasks = subject.job.spec.tasks
    names = {task.name for task in tasks}
    graph: dict[str, set[str]] = {}
    for index, task in enumerate(tasks):
        path = (*_TASKS, index, "dependsOn", "name")
        wanted = task.depends_on.name if task.depends_on else ()
        before: set[str] = set()
        for position, name in enumerate(wanted):
            where = (*path, position)
            if name not in names:
                hint = suggest(name, names - {task.name})
                yield Problem(f'dependsOn names "{name}", but no task is called so', where, hint)
            elif name == task.name:
                yield Problem(f'task "{name}" depends on itself', where, "remove the dependency")
            elif name in before:
                yield Problem(f'dependsOn names "{name}" twice', where, "name it once")
            else:
                graph.setdefault(task.name, set()).add(name)
            before.add(name)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        index = next(i for i, task in enumerate(tasks) if task.name in error.args[1])
        yield Problem(
            f"the tasks wait for each other in a circle: {circle}",
            (*_TASKS, index, "dependsOn"),
            "remove one of these dependencies",
        )
