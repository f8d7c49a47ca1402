"""A world of ours made into what Volcano's controller leaves behind, as a recording shows it."""

from typing import Any

from recounting import COUNTERS
from simulation import Simulation

from vcjob.api.kinds import JOB, POD, POD_GROUP, SUPPORTING
from vcjob.api.names import JOB_RETRY_COUNT, JOB_VERSION, MANAGED_BY
from vcjob.api.types import Object


async def leave_as_recorded(s: Simulation, after: Object) -> None:
    """Make status, pods' marks and supporting objects those of a recording after some step.

    The pods have to be the same already.
    """
    recorded = after["job"]
    await s.store.modify(
        JOB, s.namespace, "lc", lambda job: {**job, "status": _status(job["status"], recorded)},
        subresource="status",
    )  # fmt: skip
    for pod in after["pods"]:
        made = {JOB_VERSION: pod["jobVersion"], JOB_RETRY_COUNT: pod["jobRetryCount"]}
        await s.store.patch(POD, s.namespace, pod["name"], {"metadata": {"annotations": made}})
    if not after["podGroups"]:
        for group in (await s.store.list(POD_GROUP)).items:
            await s.store.delete(POD_GROUP, s.namespace, group["metadata"]["name"])
    there = {name for kind in SUPPORTING for name in after[kind.plural]}
    for kind in SUPPORTING:
        for obj in (await s.store.list(kind)).items:
            name = obj["metadata"]["name"]
            if not obj["metadata"].get("ownerReferences"):
                continue  # of another owner
            if name not in there:
                await s.store.delete(kind, s.namespace, name)
            else:
                await s.store.patch(
                    kind, s.namespace, name, {"metadata": {"labels": {MANAGED_BY: None}}}
                )


def _status(ours: Object, recorded: Object) -> Object:
    """A whole status from what a recording says of it; times are those of ours."""
    since = ours["state"]["lastTransitionTime"]
    counts = recorded.get("taskStatusCount", {})
    status: Object = {
        "state": {"phase": recorded["phase"], "lastTransitionTime": since},
        "conditions": [
            {"status": phase, "lastTransitionTime": since}
            for phase in recorded.get("conditions", ())
        ],
        "controlledResources": recorded.get("controlledResources", {}),
        "taskStatusCount": {task: {"phase": phases} for task, phases in counts.items()},
    }
    numbers: tuple[str, ...] = (*COUNTERS, "minAvailable", "retryCount", "version")
    status.update({name: recorded[name] for name in numbers if recorded.get(name)})
    if "runningDuration" in recorded:
        status["runningDuration"] = "1m0s"
    return status


def pods_of(after: Object) -> list[tuple[str, Any]]:
    """Names and phases of the pods of a recording after some step."""
    return [(pod["name"], pod["phase"]) for pod in after["pods"]]
