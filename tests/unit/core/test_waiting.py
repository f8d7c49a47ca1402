"""Order of start, and what it means for the gang."""

from typing import Any

import pytest

from vcjob.api.types import Job
from vcjob.core.draft import Draft, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.observed import Observed
from vcjob.core.waiting import effective_minimum, waiting_tasks

RUNNING, SUCCEEDED, FAILED = PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED


def draft(depends_on: Any, pods: list[tuple[str, int, PodPhase, bool]], state: str = "") -> Draft:
    tasks: list[Any] = [
        {"name": "a", "replicas": 2, "minAvailable": 2},
        {"name": "b", "replicas": 1, "minAvailable": 1},
        {"name": "c", "replicas": 1, "minAvailable": 0},
        {"name": "late", "replicas": 3, "minAvailable": 3, "dependsOn": depends_on},
    ]
    observed = Observed()
    for task, index, phase, ready in pods:
        name = f"lc-{task}-{index}"
        observed.set(PodFacts(name, name, task, index, 0, 0, phase, ready=ready))
    resources = {"vcjob.dev/state": state} if state else {}
    whole = {
        "metadata": {"name": "lc"},
        "spec": {"tasks": tasks, "minAvailable": 6},
        "status": {"state": {"phase": "Pending"}, "controlledResources": resources},
    }
    return begin(Job.of(whole), observed, None)


A_READY = [("a", 0, RUNNING, True), ("a", 1, SUCCEEDED, False)]


@pytest.mark.parametrize(
    ("depends_on", "pods", "waits"),
    [
        ({"name": ["a"]}, [], True),
        ({"name": ["a"]}, A_READY, False),
        ({"name": ["a"]}, [("a", 0, RUNNING, True), ("a", 1, RUNNING, False)], True),
        ({"name": ["a"]}, [("a", 0, RUNNING, True), ("a", 1, FAILED, False)], True),
        ({"name": ["a", "b"]}, A_READY, True),
        ({"name": ["a", "b"], "iteration": "any"}, A_READY, False),
        ({"name": ["a"], "iteration": "any"}, [], True),
        # A task of which nothing is asked is ready at once.
        ({"name": ["c"]}, [], False),
        ({"name": ["nobody"]}, [], False),
        ({"name": []}, [], False),
        # Once begun it does not wait again.
        ({"name": ["a"]}, [("late", 0, RUNNING, True)], False),
    ],
)
def test_whose_turn_it_is(depends_on: Any, pods: Any, waits: bool) -> None:
    assert waiting_tasks(draft(depends_on, pods)) == ({"late"} if waits else frozenset())


@pytest.mark.parametrize("state", ['{"v":1,"l":{"late":"0"}}', '{"v":1,"d":{"late":"0"}}'])
def test_a_task_that_had_begun_does_not_wait_though_its_pods_are_gone(state: str) -> None:
    assert not waiting_tasks(draft({"name": ["a"]}, [], state))


def test_the_gang_is_asked_for_without_tasks_that_wait() -> None:
    job = draft({"name": ["a"]}, []).job
    assert effective_minimum(job, frozenset({"late"})) == 3
    assert effective_minimum(job, frozenset()) == 6
