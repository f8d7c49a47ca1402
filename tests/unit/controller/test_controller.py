"""The controller on a real store: what it does about things that happen around a Job."""

import asyncio
import itertools
from typing import Any

import pytest
from faults import Fault, Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import (
    JOB,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)
from vcjob.api.names import JOB_FORWARDING
from vcjob.api.types import Object
from vcjob.controller.cluster import Forbidden, Unavailable
from vcjob.local.store import Store


def job(name: str = "lc", replicas: int = 2, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    return apply_defaults({"metadata": {"name": name}, "spec": {"tasks": [task], **spec}})


def on(event: str, action: str) -> list[Object]:
    return [{"event": event, "action": action}]


def test_a_pod_that_was_taken_from_its_job_is_left_alone_and_named() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        orphan = {"metadata": {"ownerReferences": []}}
        await world.store.patch(POD, "default", "lc-worker-1", orphan)
        await world.settle()
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "NameTaken"
        assert "Pod lc-worker-1 exists and does not belong to this Job" in state["message"]
        there = await world.store.get(POD, "default", "lc-worker-1")
        await world.store.delete(POD, "default", "lc-worker-1", grace_period_seconds=0)
        await world.settle()
        again = await world.store.get(POD, "default", "lc-worker-1")
        assert again["metadata"]["uid"] != there["metadata"]["uid"]
        assert (await world.status("lc"))["state"].get("reason") != "NameTaken"

    simulated(story)


def test_a_pod_that_its_node_evicts_gives_one_event_though_somebody_deletes_it_later() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=on("PodFailed", "RestartJob")))
        evicted = {"status": {"phase": "Failed", "reason": "Evicted"}}
        await world.store.patch(POD, "default", "lc-worker-0", evicted, subresource="status")
        await world.settle()
        assert (await world.status("lc")).get("retryCount", 0) == 0, "it did not fail by itself"
        assert (await world.status("lc"))["failed"] == 1

    simulated(story)


def test_an_evicted_pod_is_restarted_once() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=on("PodEvicted", "RestartPod")))
        evicted = {"status": {"phase": "Failed", "reason": "Evicted"}}
        await world.store.patch(POD, "default", "lc-worker-0", evicted, subresource="status")
        await world.settle()
        await world.advance(100)
        assert (await world.status("lc"))["retryCount"] == 1
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]

    simulated(story)


def test_a_claims_name_is_written_into_the_job_and_again_when_an_apply_erases_it() -> None:
    async def story(world: Simulation) -> None:
        claim = {"resources": {"requests": {"storage": "1Gi"}}}
        volumes = [{"mountPath": "/data", "volumeClaim": claim}]
        await world.run_job(job(volumes=volumes))
        name = (await world.job("lc"))["spec"]["volumes"][0]["volumeClaimName"]
        assert await world.exists(PERSISTENT_VOLUME_CLAIM, name)
        await world.patch_job("lc", {"spec": {"volumes": volumes}})
        await world.settle()
        assert (await world.job("lc"))["spec"]["volumes"][0]["volumeClaimName"] == name
        assert len((await world.store.list(PERSISTENT_VOLUME_CLAIM)).items) == 1

    simulated(story)


def test_jobs_of_a_queue_on_several_clusters_are_marked_and_so_are_their_pods() -> None:
    async def story(world: Simulation) -> None:
        spread = {"metadata": {"name": "wide"}, "spec": {"extendClusters": [{"name": "other"}]}}
        await world.store.create(QUEUE, spread)
        await world.settle()
        await world.run_job(job(queue="wide"))
        assert (await world.job("lc"))["metadata"]["annotations"][JOB_FORWARDING] == "true"
        pods = await world.pods()
        assert {pod["metadata"]["annotations"][JOB_FORWARDING] for pod in pods} == {"true"}

    simulated(story)


def test_the_next_try_comes_the_later_the_more_have_failed() -> None:
    async def story(world: Simulation) -> None:
        foreign = {"metadata": {"name": "lc-worker-0"}, "spec": {"containers": []}}
        await world.store.create(POD, foreign)
        await world.run_job(job())
        assert world.controller is not None
        waits: list[float] = []
        for _ in range(8):
            due = world.controller.queue.next_due
            assert due is not None
            waits.append(due - world.clock.now())
            await world.advance(waits[-1])
        assert all(later > earlier * 1.2 for earlier, later in itertools.pairwise(waits))
        assert len([m for m in await world.messages() if "NameTaken" in m]) == 1

    simulated(story)


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.LOST_ANSWER])
def test_a_cluster_that_does_not_answer_ends_no_job(fault: Fault) -> None:
    faulty: list[Faulty] = []

    def wrap(store: Store) -> Faulty:
        faulty.append(Faulty(store))
        return faulty[0]

    async def story(world: Simulation) -> None:
        for _ in range(6):
            faulty[0].arm(fault, 2)
            await world.advance(1)
            if not await world.exists(JOB, "lc"):
                await world.create_job(job())
            await world.admit()
            await world.run_pending()
        await world.advance(10)
        assert await world.phase("lc") == "Running"

    simulated(story, wrap=wrap)


def test_a_watch_that_fell_behind_is_made_up_for_by_a_list() -> None:
    async def story() -> None:
        world = Simulation()
        world.store = Store(world.clock.now, history=5)
        world.cluster = Faulty(world.store)
        await world.start()
        await world.settle()
        world.cluster.hold(True)
        await world.create_job(job("gone", 1))
        await world.create_job(job("lc", 20))
        await world.settle()
        await world.store.delete(JOB, "default", "gone")
        for number in range(10):
            await world.patch_job("lc", {"metadata": {"annotations": {"n": str(number)}}})
        world.cluster.hold(False)
        await world.settle()
        await world.admit()
        await world.settle()
        await world.run_pending()
        await world.advance(5)
        assert (await world.status("lc"))["running"] == 20
        assert world.controller is not None
        assert len(world.controller.records.by_uid) == 1
        await world.crash()

    asyncio.run(story())


def test_a_small_job_does_not_wait_until_all_pods_of_a_big_one_are_made() -> None:
    """A Job that needs many passes goes to the end of the queue after each."""

    async def story(world: Simulation) -> None:
        await world.create_job(job("big", 2_000))
        await world.settle()
        await world.admit()
        made = 0
        async for _ in world.store.watch(POD, "0"):
            made += 1
            if made == 100:
                await world.create_job(job("small", 1))
                break
        async for event in world.store.watch(JOB, "0"):
            if event.object["metadata"]["name"] == "small" and event.object.get("status"):
                break
        assert len(await world.pods()) < 2_000, "the small Job had to wait for the big one"

    simulated(story)


def test_no_pod_of_a_new_attempt_is_made_beside_one_of_the_old() -> None:
    """docs/compatibility.md row 21: Volcano makes them where minAvailable allows it."""

    async def story(world: Simulation) -> None:
        await world.run_job(job(minAvailable=1, policies=on("PodFailed", "RestartJob")))
        await world.end_pod("lc-worker-0", 1)
        await world.settle(finish_pods=False)
        await world.admit()
        await world.settle(finish_pods=False)
        assert await world.phase("lc") == "Restarting"
        assert await world.pod_names() == ["lc-worker-1"], "it is still ending"
        await world.settle()
        await world.admit()
        await world.settle()
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]
        versions = {
            pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in await world.pods()
        }
        assert versions == {"1"}

    simulated(story)


@pytest.mark.parametrize(
    ("exit_code", "reason", "message"),
    [
        (0, "JobCompleted", "2 of 2 pods succeeded"),
        (7, "JobFailed", "lc-worker-0 (exit code 7), lc-worker-1 (exit code 7)"),
    ],
)
def test_events_tell_how_a_job_ended(exit_code: int, reason: str, message: str) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.end_running(exit_code)
        await world.settle()
        told = [event["message"] for event in await world.events() if event["reason"] == reason]
        assert len(told) == 1
        assert message in told[0]

    simulated(story)


def test_events_say_which_policy_which_pod_and_which_exit_code() -> None:
    async def story(world: Simulation) -> None:
        policy = {"exitCode": 9, "action": "RestartPod"}
        await world.run_job(job(policies=[policy]))
        await world.end_pod("lc-worker-1", 9)
        await world.settle()
        assert (
            "ExecuteAction: Start to execute action RestartPod: pod lc-worker-1 failed with "
            "exit code 9 (policy for exit code 9); attempt 2 of 3 begins"
        ) in await world.messages()

    simulated(story)


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod", "RestartPartition"])
def test_the_failed_pod_of_the_last_attempt_stays(action: str) -> None:
    """docs/compatibility.md row 23: Volcano deletes it, unless the whole Job was restarted."""

    async def story(world: Simulation) -> None:
        obj = job(policies=on("PodFailed", action), maxRetry=1)
        obj["spec"]["tasks"][0]["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 1}
        await world.run_job(obj)
        await world.end_pod("lc-worker-0", 7)
        await world.settle()
        assert await world.phase("lc") == "Failed"
        assert await world.pod_names() == ["lc-worker-0"], "what still ran was stopped"
        assert (await world.status("lc"))["failed"] == 1

    simulated(story)


@pytest.mark.parametrize("timeout", [None, "5s"])
@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartPartition"])
def test_a_restart_of_pods_that_there_are_not_is_told_once(
    action: str, timeout: str | None
) -> None:
    async def story(world: Simulation) -> None:
        policy = {"event": "Unknown", "action": action, **({"timeout": timeout} if timeout else {})}
        await world.run_job(job(policies=[policy]))

        async def count() -> int:
            warnings = [e["count"] for e in await world.events() if e["reason"] == action]
            return sum(warnings)

        await world.admit("Unknown")
        await world.settle()
        await world.advance(100)
        for number in range(5):  # any other reason to look at the Job
            await world.patch_job("lc", {"metadata": {"annotations": {"n": str(number)}}})
            await world.advance(100)
        assert await count() == 1
        await world.admit("Running")
        await world.settle()
        await world.admit("Unknown")
        await world.settle()
        await world.advance(100)
        assert await count() == 2, "it has happened anew"
        assert (await world.status("lc")).get("retryCount", 0) == 0

    simulated(story)


def test_pods_that_stay_pending_ask_once_for_the_restart_of_a_partition_that_they_have_not() -> (
    None
):
    async def story(world: Simulation) -> None:
        policy = {"event": "PodPending", "action": "RestartPartition", "timeout": "5s"}
        await world.create_job(job(policies=[policy]))

        async def told() -> list[int]:
            for number in range(5):  # any other reason to look at the Job
                await world.patch_job("lc", {"metadata": {"annotations": {"n": str(number)}}})
                await world.advance(100)
            return [e["count"] for e in await world.events() if e["reason"] == "RestartPartition"]

        await world.settle()
        await world.admit()
        assert await told() == [1]
        await world.run_pending()
        await world.settle()
        await world.delete_pod("lc-worker-0")
        assert await told() == [1], "what the task lacks it lacks for good"

    simulated(story)


def test_a_pod_that_succeeded_and_went_before_the_next_look_is_not_made_again() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.end_pod("lc-worker-0")
        await world.delete_pod("lc-worker-0")
        await world.finish_terminating()
        await world.settle()
        assert await world.pod_names() == ["lc-worker-1"]
        assert (await world.status("lc"))["succeeded"] == 1

    simulated(story)


def test_what_happened_to_pods_of_an_earlier_version_is_no_event() -> None:
    """Both pods fail at once; when the first has restarted the Job, the second's code is old."""

    async def story(world: Simulation) -> None:
        policies = [
            {"exitCode": 3, "action": "RestartJob"}, {"exitCode": 4, "action": "AbortJob"}
        ]  # fmt: skip
        await world.run_job(job(policies=policies))
        await world.end_pod("lc-worker-0", 3)
        await world.end_pod("lc-worker-1", 4)
        await world.settle()
        status = await world.status("lc")
        assert (status["state"]["phase"], status["retryCount"]) == ("Restarting", 1)

    simulated(story)


def test_a_completed_task_without_partitions_asks_once_for_the_restart_of_one() -> None:
    async def story(world: Simulation) -> None:
        obj = job(policies=on("TaskCompleted", "RestartPartition"))
        waiting = {**obj["spec"]["tasks"][0], "name": "other", "policies": on("*", "ResumeJob")}
        obj["spec"]["tasks"].append(waiting)
        await world.run_job(obj)
        for index in range(2):
            await world.end_pod(f"lc-worker-{index}")
        for number in range(5):
            await world.patch_job("lc", {"metadata": {"annotations": {"n": str(number)}}})
            await world.settle()
        told = [e["count"] for e in await world.events() if e["reason"] == "RestartPartition"]
        assert told == [1]

    simulated(story)


@pytest.mark.parametrize(("iteration", "words"), [("", "ps, db are"), ("any", "one of ps, db is")])
def test_an_event_says_which_task_waits_for_which(iteration: str, words: str) -> None:
    async def story(world: Simulation) -> None:
        obj = job()
        worker = obj["spec"]["tasks"][0]
        first = [
            {**worker, "name": name, "replicas": 1, "minAvailable": 1} for name in ("ps", "db")
        ]
        worker["dependsOn"] = {"name": ["ps", "db"], "iteration": iteration}
        obj["spec"] |= {"tasks": [*first, worker], "minAvailable": 4}
        await world.create_job(obj)
        await world.settle()
        await world.admit()
        await world.settle()
        message = f"task worker waits until {words} ready"
        assert f"DependsOn: {message}" in await world.messages()
        said = (await world.status("lc"))["state"]["message"]
        numbers = "; 0 of 1 pods of ps are ready; 0 of 1 pods of db are ready; 0 of 4 pods have"
        assert said.startswith(message + numbers)
        await world.run_pending()
        await world.settle()
        assert "lc-worker-1" in await world.pod_names()

    simulated(story)


@pytest.mark.parametrize(
    ("replicas", "ended", "restarts", "says"),
    [
        (1, True, 0, "the only pod of task worker succeeded"),
        (2, True, 0, "all 2 pods of task worker succeeded"),
        (1, False, 1, "containers of pod lc-worker-0 restarted once"),
        (1, False, 2, "containers of pod lc-worker-0 restarted 2 times"),
    ],
)
def test_one_is_told_as_one(replicas: int, ended: bool, restarts: int, says: str) -> None:
    async def story(world: Simulation) -> None:
        obj = job(replicas=replicas, policies=on("*", "CompleteJob"))
        obj["spec"]["tasks"][0]["maxRetry"] = max(restarts, 1)
        await world.run_job(obj)
        if ended:
            await world.end_running()
        else:
            await world.restart_containers("lc-worker-0", restarts)
        await world.settle()
        assert (await world.status("lc"))["state"]["message"].startswith(says)

    simulated(story)


def test_a_restart_that_is_decided_when_its_pods_are_gone_already_is_seen_as_a_phase() -> None:
    """Nothing is left to be removed then, and yet an attempt was used up."""
    seen: list[tuple[int, str]] = []

    async def follow(world: Simulation) -> None:
        async for change in world.store.watch(JOB, "0"):
            status = change.object.get("status") or {}
            seen.append((status.get("retryCount", 0), status.get("state", {}).get("phase", "")))

    async def story(world: Simulation) -> None:
        follower = asyncio.create_task(follow(world))
        await world.create_job(job(policies=on("PodEvicted", "RestartTask")))
        await world.settle()
        await world.admit()
        await world.settle()
        await world.run_pod("lc-worker-1")
        await world.delete_pod("lc-worker-0")  # never ran: gone at once, lc-worker-1 has to go
        await world.settle(finish_pods=False)
        await world.run_pending()
        await world.delete_pod("lc-worker-0")  # of the new attempt: ends together with lc-worker-1
        await world.settle()
        follower.cancel()

    simulated(story)
    second = [phase for retries, phase in seen if retries == 2]
    assert second[:1] == ["Restarting"], seen
    assert "Pending" in second


@pytest.mark.parametrize("at", ["job", "template"])
def test_pods_wait_for_their_priority_class_and_come_when_it_is_made(at: str) -> None:
    async def story(world: Simulation) -> None:
        wanted = job(**({"priorityClassName": "urgent"} if at == "job" else {}))
        if at == "template":
            wanted["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = "urgent"
        await world.run_job(wanted)
        cure = ", or name another in spec.priorityClassName" if at == "job" else ""
        message = f'the PriorityClass "urgent" of task worker does not exist: create it{cure}'
        state = (await world.status("lc"))["state"]
        assert (state["phase"], state["reason"]) == ("Pending", "PriorityClassNotFound")
        assert state["message"] == message
        assert await world.messages() == [f"PriorityClassNotFound: {message}"]
        assert await world.pod_names() == []
        await world.store.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 0})
        await world.settle()
        await world.admit()
        await world.run_all()
        assert await world.phase("lc") == "Running"
        await world.store.delete(PRIORITY_CLASS, "", "urgent")
        await world.settle()
        assert (await world.status("lc"))["state"].get("reason", "") == "", "its pods are there"
        scale = {"spec": {"tasks": [{**wanted["spec"]["tasks"][0], "replicas": 3}]}}
        await world.patch_job("lc", scale)
        await world.settle()
        assert (await world.status("lc"))["state"]["reason"] == "PriorityClassNotFound"
        await world.store.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 0})
        await world.settle()
        assert "lc-worker-2" in await world.pod_names()

    simulated(story)


def test_where_priority_classes_cannot_be_seen_they_are_taken_to_exist() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(priorityClassName="urgent"))
        assert len(await world.pod_names()) == 2

    simulated(story, controller_options={"unwatched": (PRIORITY_CLASS,)})


def test_the_classes_that_every_cluster_has_need_no_object() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(priorityClassName="system-node-critical"))
        assert len(await world.pod_names()) == 2

    simulated(story)


def test_a_priority_class_that_is_made_anew_changes_what_a_waiting_gang_needs() -> None:
    async def story(world: Simulation) -> None:
        wanted = job(minAvailable=1)
        [small] = wanted["spec"]["tasks"]
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "4"}}}
        template = {"spec": {"priorityClassName": "urgent", "containers": [container]}}
        wanted["spec"]["tasks"] = [small, {**small, "name": "large", "template": template}]
        await world.create_job(wanted)
        await world.settle()
        assert (await world.store.list(POD_GROUP)).items == [], "it would hold room for no pod"
        needs = []
        for value in (-1, 7):
            await world.store.create(
                PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": value}
            )
            await world.settle()
            [group] = (await world.store.list(POD_GROUP)).items
            needs.append(group["spec"]["minResources"].get("cpu"))
            await world.store.delete(PRIORITY_CLASS, "", "urgent")
            await world.settle()
        assert needs == [None, "4"]

    simulated(story)


class Refusing(Faulty):
    """A cluster on which a kind of write is forbidden until somebody grants it."""

    granted = False

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Any
    ) -> Object:
        if options.get("subresource") == "status" and not self.granted:
            raise Forbidden("jobs/status is forbidden: cannot patch")
        return await super().patch(kind, namespace, name, patch, **options)


class Keeping(Refusing):
    """One on which pods may not be deleted."""

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Any
    ) -> Object:
        return await Faulty.patch(self, kind, namespace, name, patch, **options)

    async def delete(self, kind: Kind, namespace: str, name: str, **options: Any) -> None:
        if kind == POD and not self.granted:
            raise Forbidden("pods is forbidden: cannot delete")
        await super().delete(kind, namespace, name, **options)


@pytest.mark.parametrize(
    ("refusing", "lacking"),
    [
        (Refusing, "jobs/status is forbidden: cannot patch"),
        (Keeping, "pods is forbidden: cannot delete"),
    ],
)
def test_a_write_that_is_refused_is_told_in_one_event_and_done_when_it_is_granted(
    refusing: type[Refusing], lacking: str
) -> None:
    cluster: list[Refusing] = []

    def wrap(store: Store) -> Refusing:
        cluster.append(refusing(store))
        return cluster[0]

    async def story(world: Simulation) -> None:
        await world.create_job(job())
        await world.settle()
        await world.run_all()
        if await world.exists(POD, "lc-worker-0"):
            await world.command("lc", "TerminateJob")
        await world.advance(20)
        told = [event for event in await world.events() if event["reason"] == "Refused"]
        assert [one["type"] for one in told] == ["Warning"]
        assert lacking in told[0]["message"]
        cluster[0].granted = True
        await world.advance(60)
        await world.run_all()
        assert await world.phase("lc") in ("Running", "Terminated")

    simulated(story, wrap=wrap)


def test_what_is_decided_is_told_though_the_first_try_to_do_it_fails() -> None:
    tries: list[str] = []

    async def fail_once(kind: Kind, namespace: str, name: str) -> None:
        if kind == POD:
            tries.append(name)
            if len(tries) == 1:
                raise Unavailable("the server is away")

    async def story(world: Simulation) -> None:
        assert isinstance(world.cluster, Faulty)
        await world.run_job(job())
        world.cluster.before_delete.append(fail_once)
        await world.command("lc", "RestartJob")
        await world.advance(10)
        told = [one for one in await world.events() if one["reason"] == "ExecuteAction"]
        assert [one["count"] for one in told] == [1]
        assert len(tries) > 2

    simulated(story, wrap=Faulty)
