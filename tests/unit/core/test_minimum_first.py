"""Which places wait until the minimum of the Job runs."""

from typing import Any

import pytest

from vcjob.api.types import Job
from vcjob.core.draft import Draft, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.minimum_first import held_back
from vcjob.core.observed import Observed

NOBODY: frozenset[str] = frozenset()
LETTERS = {
    "P": PodPhase.PENDING,
    "R": PodPhase.RUNNING,
    "S": PodPhase.SUCCEEDED,
    "F": PodPhase.FAILED,
    "T": PodPhase.TERMINATING,
}


def draft(
    pods: dict[str, str], least: int, *, value: str = "true", state: str = "", version: int = 0
) -> Draft:
    """Tasks ps (2 of 3 are needed) and worker (1 of 5), with a letter for each pod ("-": none)."""
    observed = Observed()
    for task, letters in pods.items():
        for index, letter in enumerate(letters):
            if letter in LETTERS:
                phase = LETTERS[letter]
                name = f"lc-{task}-{index}"
                ended = phase if phase.is_finished else None
                observed.set(PodFacts(name, name, task, index, 0, 0, phase, ended=ended))
    tasks: list[Any] = [
        {"name": "ps", "replicas": 3, "minAvailable": 2},
        {"name": "worker", "replicas": 5, "minAvailable": 1},
    ]
    tasks[1]["template"] = {"spec": {"priorityClassName": "high"}}
    resources = {"vcjob.dev/state": state} if state else {}
    whole = {
        "metadata": {"name": "lc", "annotations": {"vcjob.dev/minimum-first": value}},
        "spec": {"tasks": tasks, "minAvailable": least},
        "status": {
            "state": {"phase": "Running"},
            "version": version,
            "controlledResources": resources,
        },
    }
    return begin(Job.of(whole), observed, None)


@pytest.mark.parametrize(
    ("pods", "least", "held"),
    [
        ({}, 3, {"ps": "2", "worker": "1-4"}),
        ({"ps": "RR", "worker": "P"}, 3, {"ps": "2", "worker": "1-4"}),
        ({"ps": "RR", "worker": "R"}, 3, {}),
        ({"ps": "RF", "worker": "S"}, 3, {}),  # they have run
        # One of the minimum is being replaced: pods that are there stay, none is added.
        ({"ps": "R-R", "worker": "RRR"}, 3, {"worker": "3-4"}),
        ({"ps": "RTR", "worker": "RRR"}, 3, {"worker": "3-4"}),
        # The Job needs more than its tasks do together.
        ({"ps": "RR", "worker": "R"}, 4, {"worker": "1-4"}),
        ({"ps": "RRR", "worker": "R"}, 4, {}),
        # It needs fewer: just so many, task by task.
        ({}, 2, {"ps": "2", "worker": "0-4"}),
        ({"ps": "RR"}, 2, {}),
        ({}, 8, {}),
        ({}, 0, {}),
    ],
)
def test_places_that_are_held_back(pods: dict[str, str], least: int, held: dict[str, str]) -> None:
    back = held_back(draft(pods, least), NOBODY, {})
    assert {task: str(places) for task, places in back.items()} == held


def test_tasks_of_a_higher_priority_come_first_as_in_the_podgroup() -> None:
    back = held_back(draft({}, 2), NOBODY, {"high": 10})
    assert {task: str(places) for task, places in back.items()} == {"ps": "0-2", "worker": "2-4"}


def test_a_task_whose_turn_has_not_come_is_left_out() -> None:
    back = held_back(draft({"ps": "RP"}, 3), frozenset({"worker"}), {})
    assert {task: str(places) for task, places in back.items()} == {"ps": "2"}
    assert not held_back(draft({"ps": "RR"}, 3), frozenset({"worker"}), {})


def test_pods_that_succeeded_and_were_cleaned_up_have_run() -> None:
    state = '{"v":1,"d":{"ps":"0-1","worker":"0,3"}}'
    assert not held_back(draft({}, 3, state=state), NOBODY, {})
    back = held_back(draft({}, 3, state=state.replace("0-1", "0")), NOBODY, {})
    assert {task: str(places) for task, places in back.items()} == {"ps": "2", "worker": "1-2,4"}


def test_pods_of_an_earlier_attempt_are_not_the_minimum() -> None:
    assert held_back(draft({"ps": "RR", "worker": "R"}, 3, version=1), NOBODY, {})


@pytest.mark.parametrize("value", ["false", "", "yes"])
def test_nothing_is_held_back_unasked(value: str) -> None:
    assert not held_back(draft({}, 3, value=value), NOBODY, {})
