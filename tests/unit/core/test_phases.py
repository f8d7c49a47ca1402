"""When a Job goes on by itself: lifecycle.md section 3, rules for Running and Restarting."""

from typing import Any

import msgspec
import pytest

from vcjob.api.types import Job
from vcjob.core.draft import Draft, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.observed import Observed
from vcjob.core.phases import advance, count_pods, count_wanted

LETTERS = {
    "P": PodPhase.PENDING,
    "R": PodPhase.RUNNING,
    "S": PodPhase.SUCCEEDED,
    "F": PodPhase.FAILED,
    "T": PodPhase.TERMINATING,
}
NOTHING: frozenset[str] = frozenset()


def draft(phase: str, tasks: dict[str, tuple[str, int | None]], version: int = 0,
          status: Any = None, **spec: Any) -> Draft:  # fmt: skip
    """Tasks as letters of their pods' phases (``-``: no pod) with their minAvailable."""
    listed = []
    observed = Observed()
    for name, (pods, least) in tasks.items():
        listed.append({"name": name, "replicas": len(pods), "minAvailable": least})
        for index, letter in enumerate(pods):
            if letter in LETTERS:
                one = LETTERS[letter]
                ended = one if one.is_finished else None
                full = f"lc-{name}-{index}"
                facts = PodFacts(full, full, name, index, version, 0, one, ended=ended)
                observed.set(facts)
    whole = {
        "metadata": {"name": "lc"},
        "spec": {"maxRetry": 3, **spec, "tasks": listed},
        "status": {"state": {"phase": phase}, "version": version, **(status or {})},
    }
    return begin(Job.of(whole), observed, None)


def after(one: Draft, *, admitted: bool = True, waiting: frozenset[str] = NOTHING) -> str:
    advance(one, waiting, admitted=admitted)
    return str(one.phase)


@pytest.mark.parametrize(
    ("pods", "least", "phase"),
    [
        ("PP", 2, "Pending"),
        ("PR", 2, "Pending"),
        ("RR", 2, "Running"),
        ("PR", 1, "Running"),
        ("FR", 2, "Running"),
        ("SF", 2, "Running"),
        ("--", 0, "Running"),
        ("", 0, "Running"),
    ],
)
def test_pending(pods: str, least: int, phase: str) -> None:
    assert after(draft("Pending", {"w": (pods, None)}, minAvailable=least)) == phase


@pytest.mark.parametrize(
    ("tasks", "spec", "phase"),
    [
        # 1. Without replicas it stays.
        ({"w": ("", 0)}, {"minAvailable": 0}, "Running"),
        # 2. minSuccess decides before anything else.
        ({"w": ("SRR", 3)}, {"minAvailable": 3, "minSuccess": 1}, "Completed"),
        ({"w": ("SRR", 3)}, {"minAvailable": 3, "minSuccess": 2}, "Running"),
        # 3a. A task with too few successes fails the Job, if the whole gang was asked for.
        ({"a": ("SF", 2), "b": ("SS", 2)}, {"minAvailable": 4}, "Failed"),
        ({"a": ("SF", 1), "b": ("SS", 2)}, {"minAvailable": 3}, "Completed"),
        ({"a": ("SF", 2), "b": ("SS", 2)}, {"minAvailable": 3}, "Completed"),
        # 3b. minSuccess is not reached any more.
        ({"w": ("SF", 1)}, {"minAvailable": 1, "minSuccess": 2}, "Failed"),
        # 3c, 3d. Enough successes, or not.
        ({"w": ("SS", None)}, {"minAvailable": 2}, "Completed"),
        ({"w": ("SF", None)}, {"minAvailable": 1}, "Completed"),
        ({"w": ("SF", None)}, {"minAvailable": 2}, "Failed"),
        ({"w": ("FF", None)}, {"minAvailable": 1}, "Failed"),
        # 4. Too many are pending again.
        ({"w": ("PPR", None)}, {"minAvailable": 2}, "Pending"),
        ({"w": ("PRR", None)}, {"minAvailable": 2}, "Running"),
        ({"w": ("SR", None)}, {"minAvailable": 2}, "Running"),
        ({"w": ("ST", None)}, {"minAvailable": 1}, "Running"),
    ],
)
def test_running(tasks: Any, spec: Any, phase: str) -> None:
    one = draft("Running", tasks, **spec)
    assert after(one) == phase
    ended = phase in ("Completed", "Failed")
    assert one.version == (1 if ended else 0), "the end decides that the rest goes"
    assert bool(one.message) == ended


def test_how_a_job_failed_is_told_with_pods() -> None:
    one = draft("Running", {"w": ("FSFFF", None)}, minAvailable=5)
    after(one)
    assert one.message == (
        "1 pod succeeded, minAvailable is 5; 4 of 5 failed: lc-w-0, lc-w-2, lc-w-3, …"
    )


def test_a_min_success_that_was_not_reached_is_told_also_where_a_task_has_too_few() -> None:
    one = draft("Running", {"w": ("SF", 2)}, minAvailable=2, minSuccess=2)
    assert after(one) == "Failed"
    assert one.message.startswith("1 pod succeeded, minSuccess is 2; 1 of 2 failed")


def test_of_a_failed_pod_it_is_told_whether_it_was_evicted_or_its_exit_code() -> None:
    one = draft("Running", {"w": ("FF", None)}, minAvailable=2)
    lost, wrong = (one.observed.pods["w", index] for index in range(2))
    one.observed.set(msgspec.structs.replace(lost, evicted=True, exit_codes=(137,)))
    one.observed.set(msgspec.structs.replace(wrong, exit_codes=(3,)))
    after(one)
    assert one.message.endswith("2 of 2 failed: lc-w-0 (evicted), lc-w-1 (exit code 3)")


def test_of_a_failed_pod_it_is_told_what_else_ended_it() -> None:
    one = draft("Running", {"w": ("FF", None)}, minAvailable=2)
    full, late = (one.observed.pods["w", index] for index in range(2))
    one.observed.set(msgspec.structs.replace(full, exit_codes=(137,), ended_by="OOMKilled"))
    one.observed.set(msgspec.structs.replace(late, ended_by="DeadlineExceeded"))
    after(one)
    assert one.message.endswith("lc-w-0 (exit code 137, OOMKilled), lc-w-1 (DeadlineExceeded)")


@pytest.mark.parametrize(
    ("pods", "status", "admitted", "phase"),
    [
        ("--", {}, True, "Pending"),
        ("--", {}, False, "Restarting"),
        ("T-", {}, True, "Restarting"),
        ("PR", {}, True, "Pending"),
        ("--", {"retryCount": 3}, True, "Failed"),
        ("TT", {"retryCount": 3}, False, "Failed"),
    ],
)
def test_restarting(pods: str, status: Any, admitted: bool, phase: str) -> None:
    one = draft("Restarting", {"w": (pods, None)}, status=status, minAvailable=2)
    assert after(one, admitted=admitted) == phase


@pytest.mark.parametrize(
    ("phase", "last"),
    [("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")],
)
def test_stopping_ends_when_no_pod_is_alive(phase: str, last: str) -> None:
    for pods, expected in (("SF", last), ("", last), ("SR", phase), ("ST", phase), ("P", phase)):
        assert after(draft(phase, {"w": (pods, None)})) == expected


@pytest.mark.parametrize("phase", ["Aborted", "Completed", "Terminated", "Failed"])
def test_what_has_ended_stays(phase: str) -> None:
    assert after(draft(phase, {"w": ("RPSF", None)})) == phase


def test_tasks_that_wait_for_others_are_not_asked_for() -> None:
    tasks: dict[str, tuple[str, int | None]] = {"ps": ("R", 1), "w": ("--", 2)}
    assert after(draft("Pending", tasks, minAvailable=3)) == "Pending"
    waiting = frozenset({"w"})
    assert after(draft("Pending", tasks, minAvailable=3), waiting=waiting) == "Running"


def test_pods_that_are_to_go_count_for_nothing_but_are_shown() -> None:
    one = draft("Running", {"w": ("SSRR", None)}, minAvailable=1)
    shorter = draft("Running", {"w": ("SS", None)}, minAvailable=1)
    shorter.observed = one.observed  # scaled down from 4 to 2
    assert (count_pods(shorter).running, count_wanted(shorter).running) == (2, 0)
    assert after(shorter) == "Completed"


def test_successes_whose_pods_were_cleaned_up_count() -> None:
    status = {"controlledResources": {"vcjob.dev/state": '{"v":1,"d":{"w":"0"}}'}}
    one = draft("Running", {"w": ("-S", None)}, status=status, minAvailable=2)
    assert count_pods(one).succeeded == 2
    assert after(one) == "Completed"
