"""What must hold for a PodGroup that somebody makes, for pods of no Job.

Source: admission.md section 5, "PodGroup create".
"""

from collections.abc import Iterator, Mapping

from vcjob.api.kinds import JOB
from vcjob.api.problems import Path, Problem
from vcjob.api.queues import QueueState, state_of
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object

_QUEUE = ("spec", "queue")


def check_pod_group(group: Object, queues: Mapping[str, Object] | None) -> list[Problem]:
    """Every problem of a PodGroup that is to be created.

    ``queues`` are those that there are, by name; None leaves out the rules that need them. The
    PodGroup of a Job is not asked about its queue: the Job was, and while a queue is closed its
    PodGroup waits and says so, also when it is made anew.
    """
    problems = [*_check_topologies(group)]
    if queues is not None and not _is_of_job(group):
        problems += _check_queue(group, queues)
    return problems


def _check_queue(group: Object, queues: Mapping[str, Object]) -> Iterator[Problem]:
    name = _spec(group).get("queue") or ""
    if not isinstance(name, str) or not name:
        return
    queue = queues.get(name)
    if queue is None:
        hint = suggest(name, queues) or "create the queue first"
        yield Problem(f'there is no queue "{name}"', _QUEUE, hint)
        return
    if (state := state_of(queue)) != QueueState.OPEN:
        yield Problem(
            f'the queue "{name}" is {state} and takes no PodGroups', _QUEUE, "choose an open queue"
        )


def _check_topologies(group: Object) -> Iterator[Problem]:
    spec = _spec(group)
    yield from _check_topology(spec.get("networkTopology"), ("spec", "networkTopology"))
    policies = spec.get("subGroupPolicy")
    for index, policy in enumerate(policies if isinstance(policies, list) else ()):
        if isinstance(policy, dict):
            path = ("spec", "subGroupPolicy", index, "networkTopology")
            yield from _check_topology(policy.get("networkTopology"), path)


def _check_topology(topology: object, path: Path) -> Iterator[Problem]:
    if not isinstance(topology, dict):
        return
    if topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        yield Problem(
            "networkTopology gives both highestTierAllowed and highestTierName",
            path,
            "name the tier in one way",
        )


def _is_of_job(group: Object) -> bool:
    metadata = group.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    return any(
        isinstance(owner, dict)
        and owner.get("kind") == JOB.kind
        and owner.get("apiVersion") == JOB.api_version
        for owner in (owners if isinstance(owners, list) else ())
    )


def _spec(group: Object) -> Object:
    spec = group.get("spec")
    return spec if isinstance(spec, dict) else {}
