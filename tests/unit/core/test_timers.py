"""Timers of policies: lifecycle.md section 5."""

from typing import Any

import pytest
from drafts import NOW, draft, pod, timers

from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.state import State, Timer
from vcjob.core.timers import arm_pending, drop_timers, fire_timers

RUNNING, PENDING, FAILED = PodPhase.RUNNING, PodPhase.PENDING, PodPhase.FAILED


def test_pods_that_are_pending_have_one_timer_each() -> None:
    one = draft([pod(0, PENDING), pod(1, RUNNING), pod(2, PENDING)],
                [{"event": "PodPending", "action": "AbortJob", "timeout": "10s"}])  # fmt: skip
    arm_pending(one, NOW)
    arm_pending(one, NOW + 5)
    assert timers(one) == [("PodPending", "AbortJob", 1010.0, "0,2")]


@pytest.mark.parametrize(
    ("event", "pods", "kept"),
    [
        ("PodPending", [pod(0, PENDING), pod(1, RUNNING)], "0"),
        ("PodPending", [], ""),
        ("PodFailed", [pod(0, FAILED), pod(1, RUNNING)], "0"),
        ("PodFailed", [pod(0, PENDING)], "0-1"),
        ("PodEvicted", [pod(0, PENDING), pod(1, RUNNING)], "0"),
        ("PodEvicted", [], "0-1"),
        ("PodEvicted", [pod(0, PodPhase.SUCCEEDED), pod(1, PodPhase.TERMINATING)], "1"),
        ("PodEvicted", [pod(0, PodPhase.SUCCEEDED), pod(1, PodPhase.SUCCEEDED, evicted=True)], "1"),
        ("TaskFailed", [pod(0, RUNNING, restarts=3), pod(1, RUNNING, restarts=2)], "0"),
        ("TaskCompleted", [pod(0, RUNNING)], ""),
        ("TaskCompleted", [pod(index, PodPhase.SUCCEEDED) for index in range(4)], "0-1"),
    ],
)
def test_a_timer_is_dropped_when_its_reason_is_gone(event: str, pods: Any, kept: str) -> None:
    timer = Timer(event, "RestartJob", NOW, "w", "0-1")
    one = draft(pods, state=State(timers=(timer,)))
    drop_timers(one, "Running")
    assert timers(one) == ([(event, "RestartJob", NOW, kept)] if kept else [])


def test_a_timer_for_an_exit_code_is_dropped_where_the_code_is_not_to_be_seen_any_more() -> None:
    pods = [
        pod(0, PodPhase.SUCCEEDED),
        pod(1, RUNNING),
        pod(2, RUNNING, exit_codes=(3,)),
        pod(3, PodPhase.SUCCEEDED, exit_codes=(3,)),
    ]
    timer = Timer("PodFailed", "RestartJob", NOW, "w", "0-3", 3)
    one = draft(pods, state=State(timers=(timer,)))
    drop_timers(one, "Running")
    assert timers(one) == [("PodFailed", "RestartJob", NOW, "2-3")]


@pytest.mark.parametrize(("group_phase", "kept"), [("Unknown", 1), ("Running", 0)])
def test_a_timer_of_the_podgroup_goes_with_its_phase(group_phase: str, kept: int) -> None:
    one = draft([], state=State(timers=(Timer("Unknown", "AbortJob", NOW),)))
    drop_timers(one, group_phase)
    assert len(one.state.timers) == kept


def test_what_is_due_is_done_earliest_first_and_once() -> None:
    early = Timer("PodFailed", "AbortJob", NOW - 2, "w", "1")
    late = Timer("PodFailed", "TerminateJob", NOW - 1, "w", "0")
    one = draft([pod(0, FAILED), pod(1, FAILED)], state=State(timers=(late, early)))
    fire_timers(one, NOW)
    assert one.phase == "Aborting"
    assert one.state.timers == ()
    assert one.version == 1


def test_of_two_that_are_due_the_first_restart_takes_the_others_reason_away() -> None:
    whole = Timer("PodFailed", "RestartTask", NOW - 2, "w", "0")
    single = Timer("PodPending", "RestartPod", NOW - 1, "w", "1")
    one = draft([pod(0, FAILED), pod(1, PENDING)], state=State(timers=(whole, single)))
    fire_timers(one, NOW)
    assert [target.indices for target in one.state.targets] == ["0-3"]
    assert [told.reason for told in one.told] == ["ExecuteAction"]


@pytest.mark.parametrize(
    ("event", "facts", "why"),
    [
        ("PodPending", pod(0, PENDING, failing="ErrImagePull: no"),
         "pod lc-w-0 has been Pending for too long (policy for PodPending): ErrImagePull: no"),
        ("PodPending", pod(0, PENDING, unscheduled="no room"),
         "pod lc-w-0 has been Pending for too long (policy for PodPending): no room"),
        ("PodFailed", pod(0, FAILED, exit_codes=(7,)),
         "the timeout of the policy for PodFailed is over for pod lc-w-0, "
         "which ended with exit code 7"),
        ("TaskFailed", pod(0, RUNNING, exit_codes=(7,), restarts=3),
         "the timeout of the policy for TaskFailed is over for pod lc-w-0, "
         "whose container ended with exit code 7"),
        ("PodEvicted", pod(0, FAILED, exit_codes=(7,), evicted=True),
         "the timeout of the policy for PodEvicted is over for pod lc-w-0"),
        ("TaskCompleted", pod(0, PodPhase.SUCCEEDED),
         "the timeout of the policy for TaskCompleted is over for task w"),
    ],
)  # fmt: skip
def test_what_a_pod_came_to_is_told_when_its_time_is_over(
    event: str, facts: PodFacts, why: str
) -> None:
    one = draft([facts], state=State(timers=(Timer(event, "AbortJob", NOW, "w", "0"),)))
    fire_timers(one, NOW)
    assert one.message == why


def test_what_is_not_due_waits() -> None:
    timer = Timer("PodFailed", "AbortJob", NOW + 1, "w", "1")
    one = draft([pod(1, FAILED)], state=State(timers=(timer,)))
    fire_timers(one, NOW)
    assert (one.phase, one.state.timers) == ("Running", (timer,))


def test_a_timer_for_several_pods_restarts_each_and_counts_one_retry() -> None:
    timer = Timer("PodPending", "RestartPod", NOW, "w", "0,2")
    one = draft([pod(0, PENDING), pod(2, PENDING)], state=State(timers=(timer,)))
    fire_timers(one, NOW)
    assert sorted(target.indices for target in one.state.targets) == ["0", "2"]
    assert one.retry == 1


@pytest.mark.parametrize(("size", "targets"), [(2, ["0-1", "2-3"]), (4, ["0-3"]), (0, [])])
def test_a_timer_for_several_pods_restarts_the_partition_of_each_once(
    size: int, targets: list[str]
) -> None:
    timer = Timer("PodPending", "RestartPartition", NOW, "w", "0-1,3")
    pods = [pod(index, PENDING) for index in (0, 1, 3)]
    one = draft(pods, state=State(timers=(timer,)), partition_size=size)
    fire_timers(one, NOW)
    assert [target.indices for target in one.state.targets] == targets
    assert one.retry == bool(targets)
    assert len([told for told in one.told if told.type == "Warning"]) == (not targets)


@pytest.mark.parametrize("due", [NOW, NOW + 5])
def test_a_timer_goes_on_for_pods_that_another_restart_leaves_alone(due: float) -> None:
    evicted = Timer("PodEvicted", "RestartPartition", NOW, "w", "0")
    pending = Timer("PodPending", "RestartPartition", due, "w", "1-2")
    pods = [pod(index, PENDING) for index in (1, 2)]
    one = draft(pods, state=State(timers=(evicted, pending)), partition_size=2)
    fire_timers(one, NOW)
    assert [target.indices for target in one.state.targets] == ["0-1", "2-3"][: 2 - (due > NOW)]
    assert timers(one) == [("PodPending", "RestartPartition", due, "2")][: due > NOW]
