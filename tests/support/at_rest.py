"""What is promised of a Job at rest: when everybody knows of everything, and has acted on it."""

import math

from owned import ENDED, FINAL, has_to_go, is_leaving, owner_of, replicas_of, slot_of, version_of
from promises import Promises
from recounting import Counted, counted_as, numbers_of, shown_by, without_successes

from vcjob.api.kinds import COMMAND, POD_GROUP
from vcjob.api.types import Object


async def check_rest(promises: Promises, job: Object) -> None:
    """All of them but the numbers, which may be told later."""
    await _check_pods(promises, job)
    await _check_commands(promises, job)
    await _check_restarting(promises, job)
    await _check_overdue(promises, job)


async def check_numbers(promises: Promises, job: Object) -> None:
    """Counters are those of the pods; for when everything that had to be done is done."""
    uid, witness = job["metadata"]["uid"], promises.witness
    pods = [counted_as(pod) for pod in await witness.pods_of(uid)]
    pods += [Counted(uid, task, "Succeeded") for task, _ in witness.cleaned]
    told, there = shown_by(job["status"]), numbers_of(pods, uid)
    if not witness.sure:
        told, there = without_successes(told), without_successes(there)
    assert told == there


async def _check_commands(promises: Promises, job: Object) -> None:
    """Orders for the Job are obeyed, or not, but none is kept."""
    uid = job["metadata"]["uid"]
    orders = (await promises.witness.simulation.store.list(COMMAND)).items
    assert not [one for one in orders if one.get("target", {}).get("uid") == uid]


async def _check_restarting(promises: Promises, job: Object) -> None:
    """A restart goes on until its pods are gone and the gang is admitted, and no longer."""
    if job["status"]["state"]["phase"] != "Restarting":
        return
    uid = job["metadata"]["uid"]
    if any(is_leaving(pod) for pod in await promises.witness.pods_of(uid)):
        return
    groups = (await promises.witness.simulation.store.list(POD_GROUP)).items
    phases = [one.get("status", {}).get("phase", "") for one in groups if owner_of(one) == uid]
    assert phases in ([], [""])


async def _check_pods(promises: Promises, job: Object) -> None:
    """The pods that there are at rest are those that the phase asks for."""
    status, replicas = job["status"], replicas_of(job)
    phase = status["state"]["phase"]
    for pod in await promises.witness.pods_of(job["metadata"]["uid"]):
        if is_leaving(pod):
            continue
        (task, index), ended = slot_of(pod), pod["status"]["phase"] in ENDED
        assert index < replicas.get(task, 0) or (ended and phase in FINAL)
        if phase in ("Pending", "Running"):
            assert ended or version_of(pod) == status.get("version", 0)
            assert not await promises.writes.missing(job, pod)
        assert ended or phase not in (*FINAL, "Aborted")


async def _check_overdue(promises: Promises, job: Object) -> None:
    """No pod is Pending for longer than the policy for that allows, if its action does anything."""
    now = promises.witness.simulation.clock.now()
    for pod in await promises.witness.pods_of(job["metadata"]["uid"]):
        pending = pod["status"]["phase"] == "Pending" and not is_leaving(pod)
        if not pending or has_to_go(pod, job, ended=False):
            continue
        since = promises.pending_since.setdefault(pod["metadata"]["uid"], now)
        allowed = _allowed_pending(job["spec"], slot_of(pod)[0])
        assert now < since + allowed, f"{pod['metadata']['name']} is Pending since {since}"


def _allowed_pending(spec: Object, name: str) -> float:
    """How long (s) a pod of a task may be Pending: the first policy for it decides."""
    task = next(one for one in spec["tasks"] if one["name"] == name)
    for policy in (*task["policies"], *spec["policies"]):
        events = {policy.get("event"), *policy.get("events", ())}
        if not events & {"PodPending", "*"} or "timeout" not in policy:
            continue
        is_idle = policy["action"] == "ResumeJob" or (
            policy["action"] == "RestartPartition" and "partitionPolicy" not in task
        )
        return math.inf if is_idle else float(policy["timeout"].removesuffix("s"))
    return math.inf
