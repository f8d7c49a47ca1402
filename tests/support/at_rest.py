"""What is promised of a Job at rest: when everybody knows of everything, and has acted on it."""

from collections import Counter

from promises import ENDED, FINAL, Promises, number_of, owner_of, replicas_of, slot_of

from vcjob.api.kinds import COMMAND, POD_GROUP
from vcjob.api.names import JOB_VERSION
from vcjob.api.types import Object


async def check_rest(promises: Promises, job: Object) -> None:
    """All of them but the numbers, which may be told later."""
    await _check_pods(promises, job)
    await _check_commands(promises, job)
    await _check_restarting(promises, job)


async def check_numbers(promises: Promises, job: Object) -> None:
    """Counters are those of the pods; for when everything that had to be done is done."""
    status, pods = job["status"], await promises.pods_of(job["metadata"]["uid"])
    by_task: dict[str, Counter[str]] = {}
    terminating = 0
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            terminating += 1
        else:
            by_task.setdefault(slot_of(pod)[0], Counter())[pod["status"]["phase"]] += 1
    for task, _ in promises.cleaned if promises.sure else ():
        by_task.setdefault(task, Counter())["Succeeded"] += 1
    counted = status.get("taskStatusCount", {})
    told = {task: +Counter(one["phase"]) for task, one in counted.items() if one["phase"]}
    total = sum(by_task.values(), Counter())
    names = ["Pending", "Running", "Failed", "Unknown"]
    if promises.sure:
        assert told == by_task, (told, by_task)
        names.append("Succeeded")
    for name in names:
        assert status.get(name.lower(), 0) == total[name], (name, status, total)
    assert status.get("terminating", 0) == terminating, (status, terminating)


async def _check_commands(promises: Promises, job: Object) -> None:
    """Orders for the Job are obeyed, or not, but none is kept."""
    uid = job["metadata"]["uid"]
    orders = (await promises.simulation.store.list(COMMAND)).items
    assert not [one for one in orders if one["target"]["uid"] == uid]


async def _check_restarting(promises: Promises, job: Object) -> None:
    """A restart goes on until its pods are gone and the gang is admitted, and no longer."""
    if job["status"]["state"]["phase"] != "Restarting":
        return
    uid = job["metadata"]["uid"]
    if any("deletionTimestamp" in pod["metadata"] for pod in await promises.pods_of(uid)):
        return
    groups = (await promises.simulation.store.list(POD_GROUP)).items
    phases = [one.get("status", {}).get("phase", "") for one in groups if owner_of(one) == uid]
    assert phases in ([], [""])


async def _check_pods(promises: Promises, job: Object) -> None:
    """The pods that there are at rest are those that the phase asks for."""
    status, replicas = job["status"], replicas_of(job)
    phase = status["state"]["phase"]
    for pod in await promises.pods_of(job["metadata"]["uid"]):
        if "deletionTimestamp" in pod["metadata"]:
            continue
        (task, index), ended = slot_of(pod), pod["status"]["phase"] in ENDED
        assert index < replicas.get(task, 0) or (ended and phase in FINAL)
        if phase in ("Pending", "Running"):
            assert ended or number_of(pod, JOB_VERSION) == status.get("version", 0)
            assert not await promises.missing(job, pod)
        assert ended or phase not in (*FINAL, "Aborted")
