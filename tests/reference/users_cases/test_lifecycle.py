"""What users of such systems ran into: lifecycle policies. Each test names its case."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from simulation import Simulation, simulated

from vcjob.api.crd import crd
from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, POD_GROUP
from vcjob.api.names import SUSPEND, UNCOUNTED_EVENTS
from vcjob.api.policies import ACTIONS, EVENTS
from vcjob.api.types import Object
from vcjob.core.actions import Action


def task(
    name: str = "worker", replicas: int = 2, *, restart: str = "Never", **fields: Any
) -> Object:
    container = {"name": "main", "image": "none"}
    template = {"spec": {"containers": [container], "restartPolicy": restart}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def job(*tasks: Object, **spec: Any) -> Object:
    return apply_defaults(
        {
            "apiVersion": JOB.api_version,
            "kind": "Job",
            "metadata": {"name": "lc"},
            "spec": {"plugins": {"svc": []}, "tasks": list(tasks or (task(),)), **spec},
        }
    )


def policy(event: str, action: str, **more: Any) -> list[Object]:
    return [{"event": event, "action": action, **more}]


def test_p52_completing_ends_when_the_last_pod_has_used_up_its_grace() -> None:
    async def story(world: Simulation) -> None:
        driver = task("driver", 1, policies=policy("TaskCompleted", "CompleteJob"))
        await world.run_job(job(driver, task("worker", 1)))
        await world.end_pod("lc-driver-0")
        await world.settle(finish_pods=False)
        await world.advance(90, finish_pods=False)
        assert await world.phase("lc") == "Completing"
        assert (await world.status("lc"))["terminating"] == 1
        await world.settle()
        assert await world.phase("lc") == "Completed"

    simulated(story)


def test_p53_completion_is_no_retry() -> None:
    async def story(world: Simulation) -> None:
        done = task("worker", 1, policies=policy("TaskCompleted", "CompleteJob"))
        await world.run_job(job(task("ps", 1), done, maxRetry=1))
        await world.end_pod("lc-worker-0")
        await world.settle()
        status = await world.status("lc")
        assert status["state"]["phase"] == "Completed"
        assert status.get("retryCount", 0) == 0

    simulated(story)


def test_p57_max_retry_0_means_3_and_the_failed_pod_of_the_last_attempt_stays() -> None:
    async def story(world: Simulation) -> None:
        manifest = job(policies=policy("PodFailed", "RestartJob"))
        manifest["spec"]["maxRetry"] = 0  # as if no webhook had filled it in
        await world.run_job(manifest)
        for attempt in (1, 2):
            await world.end_pod("lc-worker-0", exit_code=7)
            await world.settle()
            assert await world.phase("lc") == "Restarting"
            assert (await world.status("lc"))["retryCount"] == attempt
            await world.run_all()
            assert await world.phase("lc") == "Running"
        await world.end_pod("lc-worker-0", exit_code=7)
        await world.settle()
        status = await world.status("lc")
        assert status["state"]["phase"] == "Failed"
        assert "exit code 7" in status["state"]["message"]
        assert await world.pod_names() == ["lc-worker-0"]

    simulated(story)


async def _preempt(world: Simulation) -> None:
    await world.preempt_pod("lc-worker-0")


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
@pytest.mark.parametrize("crash", [False, True])
def test_p58_evictions_use_up_no_retry_if_the_annotation_says_so(action: str, crash: bool) -> None:
    async def story(world: Simulation) -> None:
        policies = [*policy("PodEvicted", action), *policy("PodFailed", action)]
        manifest = job(maxRetry=2, policies=policies)
        manifest["metadata"]["annotations"] = {UNCOUNTED_EVENTS: "PodEvicted"}
        await world.run_job(manifest)
        happens = [_preempt, _evict, _preempt, _fail, _evict, _preempt]
        for count, event in enumerate(happens, start=1):
            await event(world)
            await world.settle()
            if crash:
                await world.crash()
                await world.start()
            await world.settle()
            await world.run_all()
            status = await world.status("lc")
            assert (status["state"]["phase"], status["retryCount"]) == ("Running", count)
        await _fail(world)
        await world.settle()
        status = await world.status("lc")
        assert status["state"]["phase"] == "Failed"
        assert "that was the last of 2 attempts" in status["state"]["message"]

    simulated(story)


def test_p58_without_the_annotation_evictions_use_up_retries_as_volcanos_do() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(maxRetry=2, policies=policy("PodEvicted", "RestartJob")))
        for phase in ("Running", "Failed"):
            await _preempt(world)
            await world.settle()
            await world.run_all()
            assert await world.phase("lc") == phase

    simulated(story)


def test_p59_a_resume_is_no_retry() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(maxRetry=3))
        for _ in range(4):
            await world.command("lc", "AbortJob")
            await world.settle()
            assert await world.phase("lc") == "Aborted"
            await world.command("lc", "ResumeJob")
            await world.settle()
            await world.run_all()
            assert await world.phase("lc") == "Running"
        assert (await world.status("lc")).get("retryCount", 0) == 0

    simulated(story)


def test_p60_the_annotation_suspends_and_resumes() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.patch_job("lc", {"metadata": {"annotations": {SUSPEND: "true"}}})
        await world.settle()
        assert await world.phase("lc") == "Aborted"
        assert await world.pod_names() == []
        await world.patch_job("lc", {"metadata": {"annotations": {SUSPEND: None}}})
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


def test_p60_a_job_may_be_created_suspended() -> None:
    async def story(world: Simulation) -> None:
        manifest = job()
        manifest["metadata"]["annotations"] = {SUSPEND: "true"}
        await world.create_job(manifest)
        await world.settle()
        await world.admit()
        await world.settle()
        assert await world.phase("lc") == "Aborted"
        assert await world.pod_names() == []

    simulated(story)


def test_p60_of_annotation_and_command_the_latest_change_wins() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.patch_job("lc", {"metadata": {"annotations": {SUSPEND: "true"}}})
        await world.settle()
        await world.command("lc", "ResumeJob")
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"
        await world.advance(600)
        assert await world.phase("lc") == "Running"

    simulated(story)


@pytest.mark.parametrize("restarts", [2, 3])
def test_p61_restarts_of_containers_are_counted_for_each_pod(restarts: int) -> None:
    async def story(world: Simulation) -> None:
        worker = task(restart="OnFailure", maxRetry=3, policies=policy("TaskFailed", "AbortJob"))
        await world.run_job(job(worker))
        for pod in ("lc-worker-0", "lc-worker-1"):
            await world.restart_containers(pod, restarts)
        await world.settle()
        assert await world.phase("lc") == ("Aborted" if restarts == 3 else "Running")

    simulated(story)


def test_p62_a_task_that_failed_is_restarted_after_the_timeout() -> None:
    async def story(world: Simulation) -> None:
        failed = policy("TaskFailed", "RestartTask", timeout="10s")
        worker = task(restart="OnFailure", maxRetry=2, policies=failed)
        await world.run_job(job(worker, task("ps", 1)))
        await world.restart_containers("lc-worker-0", 2)
        await world.settle()
        await world.advance(9)
        assert await world.phase("lc") == "Running"
        await world.advance(2)
        status = await world.status("lc")
        assert status["retryCount"] == 1
        assert status["taskStatusCount"]["ps"] == {"phase": {"Running": 1}}
        assert status["taskStatusCount"]["worker"] == {"phase": {"Pending": 2}}

    simulated(story)


def test_p63_an_exit_code_counts_though_the_container_is_restarted() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"exitCode": 3, "action": "TerminateJob"}]
        await world.run_job(job(task(restart="OnFailure"), policies=policies))
        await world.restart_containers("lc-worker-0", 1, exit_code=4)
        await world.settle()
        assert await world.phase("lc") == "Running"
        await world.restart_containers("lc-worker-0", 2, exit_code=3)
        await world.settle()
        assert await world.phase("lc") == "Terminated"

    simulated(story)


async def _fail(world: Simulation) -> None:
    await world.end_pod("lc-worker-0", exit_code=1)


async def _evict(world: Simulation) -> None:
    await world.delete_pod("lc-worker-0")


async def _complete(world: Simulation) -> None:
    await world.end_pod("lc-worker-0")
    await world.end_pod("lc-worker-1")


async def _restart_often(world: Simulation) -> None:
    await world.restart_containers("lc-worker-0", 3)


@pytest.mark.parametrize(
    ("event", "happens"),
    [
        ("PodFailed", _fail),
        ("PodEvicted", _evict),
        ("TaskCompleted", _complete),
        ("TaskFailed", _restart_often),
        ("*", _fail),
        ("*", _evict),
    ],
)
def test_p64_restart_task_answers_every_event_of_a_pod(event: str, happens: Any) -> None:
    async def story(world: Simulation) -> None:
        worker = task(policies=policy(event, "RestartTask"))
        await world.run_job(job(worker, task("ps", 1)))
        await happens(world)
        await world.settle()
        pods = {
            pod["metadata"]["name"]: pod["metadata"]["annotations"]["volcano.sh/job-retry-count"]
            for pod in await world.pods()
        }
        assert pods == {"lc-worker-0": "1", "lc-worker-1": "1", "lc-ps-0": "0"}

    simulated(story)


def test_p64_an_event_of_the_podgroup_that_concerns_no_task_restarts_none_and_does_not_loop() -> (
    None
):
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=policy("Unknown", "RestartTask")))
        await world.admit("Unknown")
        await world.advance(5)
        before = world.store.version
        await world.advance(3600)
        assert world.store.version == before
        assert await world.phase("lc") == "Running"

    simulated(story)


def test_p67_schema_checks_and_controller_know_the_same_actions() -> None:
    assert {str(action) for action in Action} == set(ACTIONS)


@pytest.mark.parametrize(
    ("action", "restarted"),
    [("RestartPod", {"lc-worker-1"}), ("RestartTask", {"lc-worker-0", "lc-worker-1"})],
)
def test_p68_pods_that_stay_pending_are_restarted_after_the_timeout(
    action: str, restarted: set[str]
) -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job(policies=policy("PodPending", action, timeout="30s")))
        await world.settle()
        await world.admit()
        await world.settle()
        await world.run_pod("lc-worker-0")
        await world.settle()
        await world.advance(29)
        assert (await world.status("lc")).get("retryCount", 0) == 0
        await world.advance(2)
        assert (await world.status("lc"))["retryCount"] == 1
        newer = {
            pod["metadata"]["name"]
            for pod in await world.pods()
            if pod["metadata"]["annotations"]["volcano.sh/job-retry-count"] == "1"
        }
        assert newer == restarted

    simulated(story)


def test_p70_scaling_down_evicts_nobody() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=policy("PodEvicted", "RestartJob")))
        smaller = [task(replicas=1, minAvailable=1, maxRetry=3)]
        await world.patch_job("lc", {"spec": {"tasks": smaller, "minAvailable": 1}})
        await world.settle()
        assert await world.pod_names() == ["lc-worker-0"]
        status = await world.status("lc")
        assert status["state"]["phase"] == "Running"
        assert status.get("retryCount", 0) == 0

    simulated(story)


async def _end(world: Simulation) -> None:
    """Both pods end, so that the Job would, too."""
    await _fail(world)
    await world.end_pod("lc-worker-1")


@pytest.mark.parametrize("happens", [_fail, _evict, _end])
def test_p72_what_happened_while_no_controller_ran_is_acted_on(happens: Any) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=policy("*", "RestartJob")))
        await world.crash()
        await happens(world)
        await world.finish_terminating()
        await world.start()
        await world.settle()
        status = await world.status("lc")
        assert status["state"]["phase"] == "Restarting"
        assert status["retryCount"] == 1

    simulated(story)


def test_p72_timers_go_on_while_no_controller_runs() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=policy("PodFailed", "RestartJob", timeout="60s")))
        await world.end_pod("lc-worker-0", exit_code=1)
        await world.settle()
        await world.crash()
        world.clock.move_to(world.clock.now() + 120)
        await world.start()
        await world.settle()
        assert (await world.status("lc"))["retryCount"] == 1

    simulated(story)


def test_p76_a_job_whose_pods_are_pending_again_is_pending() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        assert await world.phase("lc") == "Running"
        await world.delete_pod("lc-worker-0")
        await world.settle()
        assert await world.phase("lc") == "Pending"
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


@pytest.mark.parametrize(("exit_code", "phase"), [(0, "Completed"), (1, "Failed")])
def test_p77_a_job_whose_pods_all_ended_ends_from_pending_too(exit_code: int, phase: str) -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job())
        await world.settle()
        await world.admit()
        await world.settle()
        await world.run_pending()
        await world.end_running(exit_code)  # before the controller has seen them run
        await world.settle()
        assert await world.phase("lc") == phase

    simulated(story)


def test_p78_scaled_to_nothing_and_back() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        none = [task(replicas=0, minAvailable=0, maxRetry=3)]
        await world.patch_job("lc", {"spec": {"tasks": none, "minAvailable": 0}})
        await world.settle()
        assert await world.pod_names() == []
        assert await world.phase("lc") == "Running"
        some = [task(replicas=1, minAvailable=1, maxRetry=3)]
        await world.patch_job("lc", {"spec": {"tasks": some, "minAvailable": 1}})
        await world.settle()
        await world.run_all()
        await world.end_running()
        await world.settle()
        assert await world.phase("lc") == "Completed"

    simulated(story)


def test_p81_the_kind_has_no_scale_subresource_since_a_job_has_several_tasks() -> None:
    [version] = crd(JOB)["spec"]["versions"]
    assert version["subresources"] == {"status": {}}


def test_p82_jobs_that_wait_for_their_dependencies_hold_up_nobody() -> None:
    async def story(world: Simulation) -> None:
        for number in range(8):  # more than there are workers
            waiting = job(
                task("first", 1), task("second", 1, dependsOn={"name": ["first"]}, minAvailable=1)
            )
            waiting["metadata"]["name"] = f"waits-{number}"
            await world.create_job(waiting)
        await world.settle()
        await world.run_job(job())
        await world.end_pod("lc-worker-0")
        await world.end_pod("lc-worker-1")
        await world.settle()
        assert await world.phase("lc") == "Completed"
        for number in range(8):
            assert await world.exists(POD_GROUP, f"waits-{number}-{await _uid(world, number)}")

    simulated(story)


async def _uid(world: Simulation, number: int) -> str:
    uid: str = (await world.job(f"waits-{number}"))["metadata"]["uid"]
    return uid


def test_p99_p102_a_new_job_has_a_status_at_once_and_says_what_it_waits_for() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job())
        for _ in range(20):
            await asyncio.sleep(0)
        assert await world.phase("lc") == "Pending"
        await world.settle()
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "WaitingForQueue"
        assert '"default"' in state["message"]

    simulated(story)


def test_p100_what_the_gang_waits_for_is_told_with_its_numbers() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job())
        await world.settle()
        condition = {
            "type": "Unschedulable",
            "status": "True",
            "reason": "ExceedsMachine",
            "message": "lc needs cpu 64 to start; this machine has cpu 4",
        }
        await world.admit("Pending", [condition])
        await world.settle()
        assert "cpu 64" in (await world.status("lc"))["state"]["message"]
        assert any("cpu 64" in message for message in await world.messages())

    simulated(story)


def test_p100_what_is_left_meanwhile_makes_no_event_each_time_that_it_changes() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job(policies=policy("PodFailed", "RestartJob")))
        for attempt in (1, 2):
            for left in ("0", "1", "2"):
                await world.settle()
                condition = {
                    "type": "Unschedulable",
                    "status": "True",
                    "reason": "NotEnoughResources",
                    "message": f"lc needs cpu 4 to start; this machine has cpu {left} left",
                }
                await world.admit("Pending", [condition])
                await world.settle()
                state = (await world.status("lc"))["state"]
                assert state["message"].endswith(f"this machine has cpu {left} left")
            told = [one for one in await world.events() if one["reason"] == "PodGroupPending"]
            assert [one["message"].endswith("cpu 0 left") for one in told] == [True]
            assert told[0]["count"] == attempt
            await world.admit()
            await world.settle()
            await world.run_pending()
            await world.end_pod("lc-worker-0", exit_code=1)

    simulated(story)


def test_p105_pods_of_a_job_that_ended_stay_unless_a_time_to_live_is_given() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.end_running()
        await world.settle()
        await world.advance(1_000_000)
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]

    simulated(story)


def test_p105_a_time_to_live_takes_the_job_and_all_of_it_away() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(ttlSecondsAfterFinished=60))
        await world.end_running()
        await world.settle()
        await world.advance(59)
        assert await world.phase("lc") == "Completed"
        await world.advance(2)
        assert not await world.exists(JOB, "lc")
        assert await world.pod_names() == []

    simulated(story)


async def _lose_the_group(world: Simulation) -> None:
    await world.admit("Unknown")


async def _stay_pending(world: Simulation) -> None:
    await world.run_pod("lc-worker-1")
    await world.run_pod("lc-ps-0")


HAPPENS = {
    "PodFailed": _fail, "exitCode": _fail, "PodEvicted": _evict, "TaskFailed": _restart_often,
    "PodPending": _stay_pending, "TaskCompleted": _complete, "Unknown": _lose_the_group,
}  # fmt: skip
STOPS = {"AbortJob": "Aborted", "CompleteJob": "Completed", "TerminateJob": "Terminated"}
WORKERS = {"lc-worker-0", "lc-worker-1"}


def _replaced(event: str, action: str) -> set[str]:
    """Whom a restart of some pods concerns, as the table in docs/lifecycle.md says."""
    if event == "Unknown":
        return set()
    the_pod = "lc-worker-1" if event == "TaskCompleted" else "lc-worker-0"
    return {the_pod} if action == "RestartPod" else WORKERS


@pytest.mark.parametrize("timeout", [None, "30s"])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("event", HAPPENS)
def test_p66_each_action_means_after_each_event_what_the_table_says(
    event: str, action: str, timeout: str | None
) -> None:
    async def story(world: Simulation) -> None:
        asked: Object = {"exitCode": 1} if event == "exitCode" else {"event": event}
        asked |= {"action": action} | ({"timeout": timeout} if timeout else {})
        worker = task(partitionPolicy={"totalPartitions": 1, "partitionSize": 2})
        await world.create_job(job(worker, task("ps", 1), policies=[asked]))
        await world.settle()
        await world.admit()
        await world.settle()
        if event != "PodPending":
            await world.run_all()
        await HAPPENS[event](world)
        await world.settle()
        if timeout:
            await world.advance(31)
        acts = bool(timeout) or event != "PodPending"
        status = await world.status("lc")
        seen = status["state"]["phase"], status.get("retryCount", 0), status.get("version", 0)
        if action in STOPS and acts:
            assert seen == (STOPS[action], 0, 1)
        elif action == "RestartJob" and acts:
            assert seen == ("Restarting", 1, 1)
            assert await world.pod_names() == []
        else:
            assert await world.pod_names() == ["lc-ps-0", "lc-worker-0", "lc-worker-1"]
            whom = _replaced(event, action) if action.startswith("Restart") and acts else set()
            newer = {
                pod["metadata"]["name"]
                for pod in await world.pods()
                if pod["metadata"]["annotations"]["volcano.sh/job-retry-count"] == "1"
            }
            assert (newer, seen[1:]) == (whom, (int(bool(whom)), 0))

    simulated(story)


def test_p66_tables_tell_when_each_event_happens_and_what_each_action_does_after_which() -> None:
    text = (Path(__file__).parents[3] / "docs" / "lifecycle.md").read_text()
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")]
    told = {cells[0].strip().strip("`"): [one.strip() for one in cells[1:]] for cells in rows}
    for event in EVENTS:
        assert all(told[event]), event
    after = told["Action"]  # after an event of a pod, of a task, of neither
    for action in ACTIONS:
        assert len(told[action]) == 3, action
        assert all(told[action]), action
    for event, column in zip(("PodFailed", "TaskCompleted", "Unknown"), after, strict=True):
        assert event in column
