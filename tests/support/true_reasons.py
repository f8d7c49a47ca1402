"""What a Job that is still under way says that it waits for, held against what there is."""

from collections import Counter

from drawn_lives import LATE_CLAIM, LATE_CLASS, LATE_QUEUE, NAME
from owned import FINAL
from promises import Promises
from simulation import Simulation

from vcjob.api.kinds import JOB, PERSISTENT_VOLUME_CLAIM, PRIORITY_CLASS, Kind
from vcjob.api.names import TASK_SPEC
from vcjob.api.types import Object


async def true_reason(
    simulation: Simulation, promises: Promises, foreign: list[tuple[Kind, Object]]
) -> str:
    """The reason that the Job gives, having looked whether it is true.

    Empty for a Job that is over, suspended or away, or has nothing to do. A Job that is on its way
    from one phase to another says why that is so, but has nothing left to wait for: no such reason
    is true of one that nobody disturbs.
    """
    if not await simulation.exists(JOB, NAME):
        return ""
    job = await simulation.job(NAME)
    spec, state = job["spec"], job["status"]["state"]
    replicas = sum(task["replicas"] for task in spec["tasks"])
    if state["phase"] in (*FINAL, "Aborted") or not replicas:
        return ""
    reason, message = state.get("reason", ""), state.get("message", "")
    match reason:
        case "NameTaken":
            names = [(kind, obj["metadata"]["name"]) for kind, obj in foreign]
            true = any(f"{kind} {name} " in message for kind, name in names)
        case "QueueNotFound":
            true = spec["queue"] == LATE_QUEUE and LATE_QUEUE in message
        case "PVCError":
            is_there = await simulation.exists(PERSISTENT_VOLUME_CLAIM, LATE_CLAIM)
            true = LATE_CLAIM in message and not is_there
        case "PriorityClassNotFound":
            named = spec.get("priorityClassName") == LATE_CLASS and LATE_CLASS in message
            listed = await simulation.store.list(PRIORITY_CLASS)
            true = named and LATE_CLASS not in [one["metadata"]["name"] for one in listed.items]
        case "DependsOn":
            true = await _waits_for_others(job, promises, message)
        case "MinAvailable":
            short = [t["name"] for t in spec["tasks"] if t.get("minAvailable", 0) > t["replicas"]]
            true = bool(short) or spec["minAvailable"] > replicas
        case _:
            true = False
    assert true, f"{state['phase']}: {reason}: {message}"
    return str(reason)


async def _waits_for_others(job: Object, promises: Promises, message: str) -> bool:
    """Whether the tasks that are said to wait have no pods, and lack one that they need."""
    ready: Counter[str] = Counter(task for task, _ in promises.witness.cleaned)
    owned = await promises.witness.pods_of(job["metadata"]["uid"])
    with_pods = {pod["metadata"]["annotations"][TASK_SPEC] for pod in owned}
    for pod in owned:
        if pod["status"]["phase"] in ("Running", "Succeeded"):
            ready[pod["metadata"]["annotations"][TASK_SPEC]] += 1
    least = {task["name"]: task.get("minAvailable", 0) for task in job["spec"]["tasks"]}
    said = [t for t in job["spec"]["tasks"] if f"task {t['name']} waits until" in message]
    for task in said:
        needs = task["dependsOn"]["name"]
        lacking = [name for name in needs if ready[name] < least[name]]
        any_is_enough = task["dependsOn"].get("iteration") == "any" and len(needs) > 1
        truly = len(lacking) == len(needs) if any_is_enough else bool(lacking)
        if task["name"] in with_pods or not truly:
            return False
    return bool(said)
