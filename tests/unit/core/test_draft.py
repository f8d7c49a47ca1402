"""What actions do in each phase: the table of lifecycle.md section 3, with our differences."""

from typing import Any

import pytest

from vcjob.api.names import UNCOUNTED_EVENTS
from vcjob.api.types import Job
from vcjob.core.actions import Action, Event
from vcjob.core.draft import Draft, Place, begin, carry_out
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet
from vcjob.core.observed import Observed

PLACE = Place("worker", 2, 0)
GROUP = {"metadata": {"uid": "g"}}
NO_CHANGE = None


def draft(phase: str, pods: tuple[PodFacts, ...] = (), **status: Any) -> Draft:
    spec = {
        "maxRetry": 3,
        "tasks": [
            {"name": "ps", "replicas": 1},
            {
                "name": "worker",
                "replicas": 5,
                "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2},
            },
        ],
    }
    observed = Observed()
    for facts in pods:
        observed.set(facts)
    whole = {
        "metadata": {"name": "lc"},
        "spec": spec,
        "status": {"state": {"phase": phase}, **status},
    }
    return begin(Job.of(whole), observed, GROUP)


def pod(index: int, phase: PodPhase = PodPhase.RUNNING, version: int = 0, retry: int = 0,
        task: str = "worker") -> PodFacts:  # fmt: skip
    name = f"lc-{task}-{index}"
    ended = phase if phase.is_finished else None
    return PodFacts(name, name, task, index, version, retry, phase, ended=ended)


ACTIVE = ("Pending", "Running")
STOPPED = ("Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated", "Failed")


@pytest.mark.parametrize(
    ("phases", "action", "phase", "version", "retries"),
    [
        (ACTIVE, "RestartJob", "Restarting", 1, 1),
        (ACTIVE, "RestartTask", "Restarting", 0, 1),
        (ACTIVE, "RestartPod", "Restarting", 0, 1),
        (ACTIVE, "RestartPartition", "Restarting", 0, 1),
        ((*ACTIVE, "Restarting"), "AbortJob", "Aborting", 1, 0),
        ((*ACTIVE, "Restarting"), "CompleteJob", "Completing", 1, 0),
        ((*ACTIVE, "Restarting"), "TerminateJob", "Terminating", 1, 0),
        ((*ACTIVE, "Restarting"), "ResumeJob", NO_CHANGE, 0, 0),
        (("Restarting",), "RestartJob", NO_CHANGE, 0, 0),  # it is being restarted already
        (("Aborting", "Aborted"), "ResumeJob", "Restarting", 0, 0),
        (STOPPED, "RestartJob", NO_CHANGE, 0, 0),
        (STOPPED, "RestartPod", NO_CHANGE, 0, 0),
        (STOPPED, "AbortJob", NO_CHANGE, 0, 0),
        (STOPPED, "CompleteJob", NO_CHANGE, 0, 0),
        (STOPPED, "TerminateJob", NO_CHANGE, 0, 0),
        (STOPPED[2:], "ResumeJob", NO_CHANGE, 0, 0),
    ],
)
def test_actions_by_phase(
    phases: tuple[str, ...], action: str, phase: str | None, version: int, retries: int
) -> None:
    for before in phases:
        one = draft(before)
        changed = carry_out(one, Action(action), "because", PLACE)
        assert (one.phase, one.version, one.retry) == (phase or before, version, retries), before
        assert changed == (phase is not NO_CHANGE), before


@pytest.mark.parametrize(
    ("action", "place", "indices"),
    [
        ("RestartPod", PLACE, "2"),
        ("RestartPartition", PLACE, "2-3"),
        ("RestartPartition", Place("worker", 4, 0), "4"),
        ("RestartTask", PLACE, "0-4"),
    ],
)
def test_targets_of_restarts(action: str, place: Place, indices: str) -> None:
    one = draft("Running")
    carry_out(one, Action(action), "because", place)
    assert [(t.task, t.indices, t.retry) for t in one.state.targets] == [("worker", indices, 1)]


@pytest.mark.parametrize(
    ("action", "place"),
    [
        ("RestartPartition", Place("ps", 0, 0)),
        ("RestartPod", None),
        ("RestartTask", None),
        ("RestartTask", Place("nobody", 0, 0)),
    ],
)
def test_a_restart_without_a_target_changes_nothing_and_says_so(
    action: str, place: Place | None
) -> None:
    one = draft("Running")
    assert not carry_out(one, Action(action), "because", place)
    assert (one.phase, one.retry) == ("Running", 0)
    assert [told.type for told in one.told] == ["Warning"]


@pytest.mark.parametrize(
    ("retry_of_pod", "retries"),
    [
        (0, 1),  # it failed before the restart that is under way
        (1, 2),  # it was made by the restart that is under way, and failed again
    ],
)
def test_a_retry_is_counted_once(retry_of_pod: int, retries: int) -> None:
    one = draft("Restarting", retryCount=1)
    carry_out(one, Action.RESTART_POD, "because", Place("worker", 1, retry_of_pod))
    assert one.retry == retries


@pytest.mark.parametrize(("retry", "kept"), [(0, False), (1, False), (2, True)])
def test_the_last_restart_of_a_job_keeps_the_pods_that_ended(retry: int, kept: bool) -> None:
    one = draft("Running", (pod(0, PodPhase.FAILED), pod(1)), retryCount=retry)
    carry_out(one, Action.RESTART_JOB, "because", PLACE)
    doomed = one.condemned("worker", one.observed.task("worker"))
    assert doomed == (IndexSet.of(1) if kept else IndexSet.of(0, 1))


@pytest.mark.parametrize(
    ("retry", "then", "forgotten"),
    [
        (0, Action.ABORT_JOB, False),
        (0, Action.RESTART_JOB, True),
        (0, Action.RESTART_TASK, True),
        (2, Action.RESTART_TASK, False),  # no retry is left for that one
    ],
)
def test_of_a_restart_of_some_that_does_not_come_about_no_success_is_forgotten(
    retry: int, then: Action, forgotten: bool
) -> None:
    """Index 1 has succeeded, and its pod is no more."""
    one = draft("Running", (pod(2), pod(4)), retryCount=retry)
    one.job.metadata.annotations[UNCOUNTED_EVENTS] = Event.POD_EVICTED
    one.done["worker"] = IndexSet.of(1, 3)
    evicted, failed = Place("worker", 1, retry), Place("worker", 4, retry)
    carry_out(one, Action.RESTART_PARTITION, "because", evicted, Event.POD_EVICTED)
    assert one.done["worker"] == IndexSet.of(3)
    carry_out(one, then, "because", failed, Event.POD_FAILED)
    done = one.done.get("worker", NO_INDICES)
    assert (1 not in done) == forgotten


def test_stopping_keeps_the_pods_that_ended() -> None:
    pods = (pod(0, PodPhase.FAILED), pod(1, PodPhase.SUCCEEDED), pod(2), pod(3, PodPhase.PENDING))
    one = draft("Running", pods)
    carry_out(one, Action.ABORT_JOB, "because")
    assert one.condemned("worker", one.observed.task("worker")) == IndexSet.of(2, 3)


def test_pods_beyond_the_replicas_and_of_unknown_tasks_are_to_go() -> None:
    one = draft("Running", (pod(4), pod(5), pod(0, task="gone")))
    assert one.condemned("worker", one.observed.task("worker")) == IndexSet.of(5)
    assert one.condemned("gone", one.observed.task("gone")) == IndexSet.of(0)


def test_pods_made_by_a_targeted_restart_are_not_its_targets() -> None:
    one = draft("Running", (pod(1, retry=0), pod(2, retry=1), pod(3, retry=0)))
    carry_out(one, Action.RESTART_TASK, "because", PLACE)
    assert one.condemned("worker", one.observed.task("worker")) == IndexSet.of(1, 3)


def test_a_kill_of_the_whole_job_gives_up_its_podgroup_and_its_timers() -> None:
    one = draft("Running")
    carry_out(one, Action.RESTART_JOB, "because")
    assert (one.state.group, one.state.timers, one.state.targets) == ("g", (), ())
