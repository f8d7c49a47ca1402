"""Which policy answers: the table of lifecycle.md section 4."""

from typing import Any

import pytest

from vcjob.api.types import Job, JobSpec
from vcjob.core.actions import Action, Event
from vcjob.core.policies import Answer, answer, answer_exit_codes


def spec(of_task: list[Any] | None = None, of_job: list[Any] | None = None) -> JobSpec:
    task = {"name": "worker", "policies": of_task or []}
    return Job.of({"spec": {"tasks": [task, {"name": "ps"}], "policies": of_job or []}}).spec


def policy(event: str = "", action: str = "RestartJob", **more: Any) -> dict[str, Any]:
    return {"action": action, **({"event": event} if event else {}), **more}


@pytest.mark.parametrize(
    ("of_task", "of_job", "event", "exit_codes", "wanted"),
    [
        ([], [policy("PodFailed")], "PodFailed", (1,), "RestartJob"),
        ([], [policy("PodFailed")], "PodEvicted", (), None),
        ([policy("*", "RestartTask")], [policy("PodFailed")], "PodFailed", (1,), "RestartTask"),
        ([policy("PodEvicted", "RestartTask")], [policy("*")], "PodFailed", (1,), "RestartJob"),
        ([], [policy("*", "AbortJob"), policy("PodFailed")], "PodFailed", (1,), "AbortJob"),
        ([], [policy(events=["PodFailed", "PodEvicted"])], "PodEvicted", (), "RestartJob"),
        ([], [policy("PodFailed", events=["TaskFailed"])], "TaskFailed", (), "RestartJob"),
        ([], [policy("PodFailed", events=["TaskFailed"])], "PodFailed", (), "RestartJob"),
        ([], [policy(exitCode=3)], "PodFailed", (1, 3), "RestartJob"),
        ([], [policy(exitCode=3)], "PodFailed", (1,), None),
        ([], [policy(exitCode=3)], "PodFailed", (), None),
        ([], [policy("PodPending")], "PodPending", (), None),
        ([], [policy("PodPending", timeout="1m")], "PodPending", (), "RestartJob"),
        ([], [policy("*")], "PodPending", (), None),
        ([], [policy("*", timeout="1m")], "PodPending", (), "RestartJob"),
        ([], [policy("PodFailed", "SyncJob"), policy("*")], "PodFailed", (), "RestartJob"),
        ([], [policy("PodFailed", "ResumeJob"), policy("*")], "PodFailed", (), None),
        ([], [], "PodFailed", (1,), None),
    ],
)
def test_the_first_policy_that_matches_decides_and_the_tasks_come_first(
    of_task: list[Any],
    of_job: list[Any],
    event: str,
    exit_codes: tuple[int, ...],
    wanted: str | None,
) -> None:
    found = answer(spec(of_task, of_job), "worker", Event(event), exit_codes)
    assert (found.action if found else None) == wanted


def test_another_tasks_policies_are_not_asked() -> None:
    assert answer(spec([policy("*")]), "ps", Event.POD_FAILED) is None


@pytest.mark.parametrize(
    ("timeout", "delay"), [("", 0.0), ("90s", 90.0), ("1h30m", 5400.0), ("-5s", 0.0), ("soon", 0.0)]
)
def test_the_timeout_is_the_delay(timeout: str, delay: float) -> None:
    policies = [policy("PodFailed", timeout=timeout)]
    found = answer(spec(of_job=policies), "worker", Event.POD_FAILED)
    assert found == Answer(Action.RESTART_JOB, delay)


def test_a_container_that_ends_while_its_pod_goes_on_concerns_exit_codes_only() -> None:
    policies = [policy("*", "AbortJob"), policy("", "RestartPod", exitCode=3)]
    found = answer_exit_codes(spec(of_job=policies), "worker", (3,))
    assert found == Answer(Action.RESTART_POD, 0.0, 3)
    assert answer_exit_codes(spec(of_job=policies), "worker", (4,)) is None
