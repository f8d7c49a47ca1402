"""What users do to Jobs, and what becomes of them: what no recording shows."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from end_to_end.mirror import PATIENCE_SECONDS, WATCHED
from end_to_end.operating import Operating
from end_to_end.recording import phases, said, seen
from end_to_end.target import Target
from end_to_end.together import Told, tell_together
from end_to_end.world import World

from vcjob.api.kinds import COMMAND, CONFIG_MAP, EVENT, JOB, POD, QUEUE
from vcjob.api.names import SUSPEND
from vcjob.api.types import Object
from vcjob.cli.following import changes

Story = Callable[[World], Awaitable[None]]


def job(replicas: int = 2, *, tasks: tuple[str, ...] = ("worker",), **spec: Any) -> Object:
    """A Job called ``lc`` with svc and env, as a user writes it."""
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "600"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    made = [{"name": name, "replicas": replicas, "template": template} for name in tasks]
    plugins = {"svc": [], "env": []}
    return {"metadata": {"name": "lc"}, "spec": {"tasks": made, "plugins": plugins, **spec}}


async def run(world: World, wanted: int) -> None:
    """Have that many pods made, and run them."""
    await world.until(lambda: len(world.pending()) == wanted)
    for name in world.pending():
        await world.run_pod(name)


async def start(world: World, made: Object) -> Object:
    """Have a Job of all its pods run."""
    await world.create_job(made)
    await world.admit()
    await run(world, sum(task["replicas"] for task in made["spec"]["tasks"]))
    return await world.phase("lc", "Running")


# Event, action, and the phase that it ends in.
REACTIONS = [
    ("PodFailed", "AbortJob", "Aborted"),
    ("PodFailed", "TerminateJob", "Terminated"),
    ("PodFailed", "CompleteJob", "Completed"),
    ("PodEvicted", "TerminateJob", "Terminated"),
    ("TaskCompleted", "CompleteJob", "Completed"),
    ("TaskCompleted", "TerminateJob", "Terminated"),
    (3, "AbortJob", "Aborted"),
    (3, "TerminateJob", "Terminated"),
]
ORDERS = [("AbortJob", "Aborted"), ("CompleteJob", "Completed"), ("TerminateJob", "Terminated")]


def reaction(event: str | int, action: str, phase: str) -> Story:
    async def story(world: World) -> None:
        policy = {"exitCode": event} if isinstance(event, int) else {"event": event}
        await start(
            world, job(1, tasks=("chief", "worker"), policies=[{**policy, "action": action}])
        )
        if event == "PodEvicted":
            await world.delete_pod("lc-chief-0")
        elif event == "TaskCompleted":
            await world.end_pod("lc-chief-0")
        else:
            await world.end_pod("lc-chief-0", event if isinstance(event, int) else 1)
        await world.phase("lc", phase)
        await world.until(lambda: not world.find(POD, "lc-worker-0"))
        assert phases(world)[-1] == phase
        # The pod that has ended stays, for its log; the one that was deleted does not.
        assert bool(world.find(POD, "lc-chief-0")) == (event != "PodEvicted")
        await world.until(lambda: any(f"execute action {action}" in said(one)
                                      for one in world.job_events()))  # fmt: skip

    return story


def order(action: str, phase: str) -> Story:
    async def story(world: World) -> None:
        await start(world, job())
        await world.command("lc", action)
        await world.phase("lc", phase)
        await world.until(lambda: not world.all(POD))
        reasons = {"CommandIssued", "ExecuteAction"}
        await world.until(lambda: reasons <= {one["reason"] for one in world.job_events()})

    return story


async def no_retries_are_left(world: World) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    await world.create_job(job(policies=policies, maxRetry=2))
    await world.admit()
    await run(world, 2)
    await world.phase("lc", "Running")
    await world.end_pod("lc-worker-0", 1)
    await world.admit_again()
    await run(world, 2)
    await world.phase("lc", "Running")
    await world.end_pod("lc-worker-1", 1)
    failed = await world.phase("lc", "Failed")
    assert failed["status"]["retryCount"] == 2
    assert len(world.made) == 4


async def finished_jobs_go_with_all_they_had_when_their_time_is_over(world: World) -> None:
    await start(world, job(ttlSecondsAfterFinished=1))
    for name in ("lc-worker-0", "lc-worker-1"):
        await world.end_pod(name)
    await world.until(lambda: "Completed" in phases(world))
    await gone(world)


async def a_deleted_job_takes_along_all_it_had(world: World) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"mountPath": "/data", "volumeClaim": claim}
    await start(world, job(plugins={"svc": [], "ssh": []}, volumes=[volume]))
    assert all(world.all(kind) for kind in WATCHED if kind != EVENT)
    await world.delete(JOB, world.namespace, "lc")
    await gone(world)


async def gone(world: World) -> None:
    kinds = [kind for kind in WATCHED if kind != EVENT]
    await world.until(lambda: not any(map(stays, (o for kind in kinds for o in world.all(kind)))))


def stays(obj: Object) -> bool:
    """Whether nobody has told an object to go; when it is gone is others' business then."""
    leaves = "deletionTimestamp" in obj["metadata"] and obj["metadata"].get("finalizers")
    return not leaves


async def an_annotation_suspends_and_lets_go_on(world: World) -> None:
    await start(world, job())
    await world.patch_job("lc", {"metadata": {"annotations": {SUSPEND: "true"}}})
    await world.phase("lc", "Aborted")
    await world.until(lambda: not world.all(POD))
    await world.patch_job("lc", {"metadata": {"annotations": {SUSPEND: None}}})
    await world.phase("lc", "Pending")
    await world.admit()
    await run(world, 2)
    await world.phase("lc", "Running")
    assert phases(world) == ["Pending", "Running", "Aborting", "Aborted", "Restarting",
                             "Pending", "Running"]  # fmt: skip


async def a_job_grows_and_shrinks(world: World) -> None:
    await start(world, job(3))
    for replicas in (5, 1):
        await scale(world, replicas)
    assert phases(world) == ["Pending", "Running"]


async def scale(world: World, replicas: int) -> None:
    """Have another number of pods, and wait until they and their lists of hosts are so."""
    task = {**(await world.job("lc"))["spec"]["tasks"][0], "replicas": replicas, "minAvailable": 1}
    await world.patch_job("lc", {"spec": {"tasks": [task], "minAvailable": 1}})
    wanted = [f"lc-worker-{index}" for index in range(replicas)]
    await world.until(lambda: [pod["metadata"]["name"] for pod in world.all(POD)] == wanted)
    hosts = "".join(f"{name}.lc\n" for name in wanted)
    await world.until(lambda: hosts_of(world) == hosts)


def hosts_of(world: World) -> str:
    found = world.find(CONFIG_MAP, "lc-svc")
    return found["data"]["worker.host"].rstrip("\n") + "\n" if found else ""


async def what_waits_for_its_gang_has_no_pod(world: World) -> None:
    await world.create_job(job())
    await world.until(world.groups)
    await world.phase("lc", "Pending")
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources",
                 "message": "2/2 tasks in gang unschedulable"}  # fmt: skip
    await world.admit("Pending", [condition])
    await world.until(lambda: [one for one in world.job_events()
                               if one["reason"] == "PodGroupPending"])  # fmt: skip
    assert not world.made
    await world.admit()
    await run(world, 2)
    await world.phase("lc", "Running")


async def a_queue_is_closed_while_a_job_is_in_it_and_opened_again(world: World) -> None:
    name = world.namespace  # Queues are in no namespace
    made = await world.create_apart(QUEUE, {"metadata": {"name": name}, "spec": {"parent": "root"}})
    await state_of(world, name, "Open")
    await start(world, job(queue=name))
    for action, state in (("CloseQueue", "Closing"), ("OpenQueue", "Open"),
                          ("CloseQueue", "Closing")):  # fmt: skip
        await operate(world, made, action)
        await state_of(world, name, state)
    for pod in ("lc-worker-0", "lc-worker-1"):
        await world.end_pod(pod)
    await world.phase("lc", "Completed")
    await state_of(world, name, "Closed")
    assert not (await world.cluster.list(COMMAND, world.namespace)).items


async def operate(world: World, queue: Object, action: str) -> None:
    """What ``vcctl queue operate`` does."""
    metadata = queue["metadata"]
    target = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "name": metadata["name"],
              "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}  # fmt: skip
    await world.create(
        COMMAND,
        {
            "metadata": {"generateName": f"{metadata['name']}-", "ownerReferences": [target]},
            "action": action,
            "target": target,
        },
    )


async def state_of(world: World, queue: str, state: str) -> None:
    """Wait until a Queue is in a state."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for _, obj in changes(world.cluster, QUEUE):
            there = (obj.get("status") or {}).get("state")
            if (obj["metadata"]["name"], there) == (queue, state):
                return


STORIES: dict[str, Story] = {
    **{f"{event}-{action}": reaction(event, action, phase) for event, action, phase in REACTIONS},
    **{f"order-{action}": order(action, phase) for action, phase in ORDERS},
    "no-retries-left": no_retries_are_left,
    "time-to-live": finished_jobs_go_with_all_they_had_when_their_time_is_over,
    "deleted": a_deleted_job_takes_along_all_it_had,
    "suspended": an_annotation_suspends_and_lets_go_on,
    "scaled": a_job_grows_and_shrinks,
    "queue": a_queue_is_closed_while_a_job_is_in_it_and_opened_again,
    "gang": what_waits_for_its_gang_has_no_pod,
}


def obstacle(name: str, target: Target) -> str:
    """Why a story cannot be told on a cluster, empty if it can."""
    if name == "gang" and target.facts.scheduler:
        return "the cluster's scheduler admits every gang at once"
    if name in ("deleted", "time-to-live") and not target.facts.collector:
        return "nobody collects garbage"
    if name == "suspended" and target.controller == "volcano":
        return "the annotation is vcjob's own"
    return ""


@pytest.fixture(scope="module")
def told(target: Target, operator: Operating | None, request: pytest.FixtureRequest) -> Told[None]:
    async def story(world: World, name: str) -> None:
        await STORIES[name](world)
        target.save(f"story-{name}", seen(world))

    return tell_together(request, target, story, obstacle)


@pytest.mark.timeout(300)  # the first test has the others told too
@pytest.mark.parametrize("name", STORIES)
def test_a_story_ends_as_it_should(name: str, target: Target, told: Told[None]) -> None:
    if reason := obstacle(name, target):
        pytest.skip(reason)
    told.of(name)
