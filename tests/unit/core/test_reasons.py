"""Why a Job is where it is: the one reason that is told of several, and its words."""

from typing import Any

import pytest

from vcjob.api.types import Job, Object
from vcjob.core.draft import Draft, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import IndexSet
from vcjob.core.observed import Observed
from vcjob.core.reasons import Trouble, unschedulable, waiting_reason

NOBODY: frozenset[str] = frozenset()


def draft(*failing: str, phase: str = "Pending", tasks: Any = None, **spec: Any) -> Draft:
    """A Job whose pods cannot start for these reasons ("": that one has none)."""
    observed = Observed()
    for index, why in enumerate(failing):
        name = f"j-w-{index}"
        observed.set(PodFacts(name, name, "w", index, 0, 0, PodPhase.PENDING, failing=why))
    whole = {
        "metadata": {"name": "j"},
        "spec": {"tasks": tasks or [{"name": "w", "replicas": 2}], **spec},
        "status": {"state": {"phase": phase}},
    }
    return begin(Job.of(whole), observed, None)


def group(*conditions: tuple[str, str, str, str]) -> Object:
    listed = [
        {"type": kind, "status": status, "lastTransitionTime": when, "message": message}
        for kind, status, when, message in conditions
    ]
    return {"metadata": {"uid": "g"}, "status": {"phase": "Pending", "conditions": listed}}


def told(one: Draft, group: Object | None = None, waiting: frozenset[str] = NOBODY,
         *, admitted: bool = True) -> tuple[str, str, str] | None:  # fmt: skip
    why = waiting_reason(one, group, waiting, admitted=admitted)
    return (why.reason, why.message, why.event) if why else None


def test_a_minimum_that_replicas_never_reach_comes_before_all_else() -> None:
    task = {"name": "w", "replicas": 2, "minAvailable": 3}
    full = group(("Unschedulable", "True", "2026-01-01T00:00:00Z", "no room"))
    reason = told(draft(tasks=[task]), full, admitted=False)
    assert reason == (
        "MinAvailable",
        "minAvailable of task w is 3, but there are only 2 replicas: "
        "lower minAvailable or raise replicas",
        "Warning",
    )
    assert told(draft(minAvailable=3)) == (
        "MinAvailable",
        "minAvailable of the Job is 3, but there are only 2 replicas: "
        "lower minAvailable or raise replicas",
        "Warning",
    )


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], None),
        ([("Unschedulable", "False", "2026-01-02T00:00:00Z", "no room")], None),
        ([("Scheduled", "True", "2026-01-02T00:00:00Z", "")], None),
        ([("Unschedulable", "True", "2026-01-02T00:00:00Z", "no room")],
         "PodGroup of j is unschedulable: no room"),
        ([("Unschedulable", "True", "2026-01-02T00:00:00Z", "")],
         "PodGroup of j is unschedulable: no reason given"),
        # The newest counts.
        ([("Unschedulable", "True", "2026-01-02T00:00:00Z", "no room"),
          ("Scheduled", "True", "2026-01-03T00:00:00Z", "")], None),
        ([("Scheduled", "True", "2026-01-01T00:00:00Z", ""),
          ("Unschedulable", "True", "2026-01-02T00:00:00Z", "no room")],
         "PodGroup of j is unschedulable: no room"),
    ],
)  # fmt: skip
def test_what_the_scheduler_says(
    conditions: list[tuple[str, str, str, str]], message: str | None
) -> None:
    why = unschedulable(draft(), group(*conditions))
    assert (why.message if why else None) == message
    if message is None:  # then it is told that the queue is waited for, which makes no Event
        queue = 'waiting to be admitted by the queue "default"'
        assert told(draft(), group(*conditions), admitted=False) == ("WaitingForQueue", queue, "")


def test_the_first_pod_that_cannot_start_is_named_while_the_job_is_pending() -> None:
    one = draft("", "image x cannot be had")
    message = "pod j-w-1 cannot start: image x cannot be had"
    assert told(one) == ("PodsNotStarting", message, "Warning")
    assert told(draft("", "image x cannot be had", phase="Running")) is None


def test_tasks_that_wait_for_others_are_named_with_those() -> None:
    tasks = [
        {"name": "a", "replicas": 1},
        {"name": "b", "replicas": 1, "dependsOn": {"name": ["a"]}},
        {"name": "c", "replicas": 1, "dependsOn": {"name": ["a", "b"], "iteration": "any"}},
    ]
    waiting = frozenset({"b", "c"})
    message = "task b waits until a is ready; task c waits until one of a, b is ready"
    for phase in ("Pending", "Running"):
        assert told(draft(tasks=tasks, phase=phase), waiting=waiting) == (
            "DependsOn", message, "Normal",
        )  # fmt: skip


def test_a_job_that_waits_for_nothing_but_its_pods_makes_no_event() -> None:
    assert told(draft()) == ("PodsNotRunning", "waiting for pods to run", "")
    assert told(draft(phase="Running")) is None


def test_pods_that_are_held_back_are_told_with_their_numbers() -> None:
    held = {"w": IndexSet.of(3, 4)}
    beyond = "pods beyond the minimum are made once it runs (vcjob.dev/minimum-first): 2 of task w"
    why = waiting_reason(draft("", phase="Running"), None, NOBODY, held, admitted=True)
    assert why == Trouble("MinimumFirst", beyond, "Normal")
    tasks = [{"name": "w", "replicas": 5}, {"name": "late", "dependsOn": {"name": ["w"]}}]
    why = waiting_reason(draft(tasks=tasks), None, frozenset({"late"}), held, admitted=True)
    assert why == Trouble("DependsOn", f"task late waits until w is ready; {beyond}", "Normal")
