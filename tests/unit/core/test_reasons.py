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
    return (why.reason, why.sentence, why.event) if why else None


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
    assert (why.sentence if why else None) == message
    if message is None:  # then it is told that the queue is waited for, which makes no Event
        queue = 'waiting to be admitted by the queue "default"'
        assert told(draft(), group(*conditions), admitted=False) == ("WaitingForQueue", queue, "")


@pytest.mark.parametrize(
    ("reason", "cure"),
    [
        ("ExceedsMachine", "; lower minAvailable, or create the Job anew with pods that request "
         "less"),
        ("ExceedsQueue", "; raise that, lower minAvailable, or create the Job anew with pods that "
         "request less"),
        ("QueueClosed", "; open it"),
        ("NotEnoughResources", ""),
        ("Unknown", ""),
    ],
)  # fmt: skip
def test_a_gang_that_waits_is_told_what_helps_and_podgroups_are_called_like_their_jobs(
    reason: str, cure: str
) -> None:
    uid = "694e8e99-bbfb-428d-806c-0638b122abff"
    full = group(("Unschedulable", "True", "2026-01-01T00:00:00Z", f"j-{uid} is behind k-8-{uid}"))
    full["status"]["conditions"][0]["reason"] = reason
    why = unschedulable(draft(), full)
    assert why
    assert why.told == f"PodGroup of j is unschedulable: j is behind k-8{cure}"
    later = "PodGroup of j is unschedulable: j is behind l"
    assert why.is_told_by(why.reason, later) is not bool(cure), "what passes makes no new Event"


def test_a_job_without_replicas_says_that_nothing_will_happen() -> None:
    reason = ("NoReplicas", "no task has replicas: raise those of one", "")
    assert told(draft(phase="Running", tasks=[{"name": "w", "replicas": 0}])) == reason


def test_the_first_pod_that_cannot_start_is_named() -> None:
    one = draft("", "image x cannot be had")
    message = "pod j-w-1 cannot start: image x cannot be had; 0 of 2 pods have started"
    assert told(one) == ("PodsNotStarting", message, "Warning")
    assert told(draft("", "image x cannot be had", phase="Running")) == told(one)


def test_tasks_that_wait_for_others_are_named_with_those() -> None:
    tasks = [
        {"name": "a", "replicas": 1, "minAvailable": 1},
        {"name": "b", "replicas": 1, "dependsOn": {"name": ["a"]}},
        {"name": "c", "replicas": 1, "dependsOn": {"name": ["a", "b"], "iteration": "any"}},
    ]
    waiting = frozenset({"b", "c"})
    message = "task b waits until a is ready; task c waits until one of a, b is ready"
    numbers = "0 of 1 pods of a are ready; 0 of 3 pods have started; not yet 1 of task a"
    for phase in ("Pending", "Running"):
        why = waiting_reason(draft(tasks=tasks, phase=phase), None, waiting, admitted=True)
        assert why == Trouble("DependsOn", message, "Normal", standing=f"; {numbers}")


TASKS = [{"name": "a", "replicas": 3}, {"name": "b", "replicas": 2}]


def running(*pods: PodFacts, phase: str, least: int) -> Draft:
    observed = Observed()
    for facts in pods:
        observed.set(facts)
    spec = {"tasks": TASKS, "minAvailable": least}
    whole = {"metadata": {"name": "j"}, "spec": spec, "status": {"state": {"phase": phase}}}
    return begin(Job.of(whole), observed, None)


def one_pod(task: str, index: int, phase: str, **more: Any) -> PodFacts:
    name = f"j-{task}-{index}"
    return PodFacts(name, name, task, index, 0, 0, PodPhase(phase), **more)


A, B = one_pod("a", 0, "Running"), one_pod("b", 0, "Failed")
CRASHING = one_pod("a", 1, "Running", failing="CrashLoopBackOff")
NO_NODE = "0/3 nodes are available"


@pytest.mark.parametrize(
    ("pods", "reason", "message"),
    [
        ([A], "PodsNotRunning",
         "waiting for pods to run: 1 of 5 pods has started{least}; not yet 2 of task a, 2 of "
         "task b"),
        ([A, B, one_pod("a", 1, "Running"), one_pod("a", 2, "Succeeded"),
          one_pod("b", 1, "Pending", unscheduled=NO_NODE)], "PodsNotRunning",
         "waiting for pods to run: 4 of 5 pods have started{least}; not yet 1 of task b; "
         f"pod j-b-1 has no node: {NO_NODE}"),
        ([A, one_pod("a", 1, "Terminating"), one_pod("b", 1, "Unknown")], "PodsNotRunning",
         "waiting for pods to run: 1 of 5 pods has started{least}; not yet 2 of task a, 2 of "
         "task b; pod j-a-1 is still ending"),
        ([A, one_pod("b", 1, "Unknown")], "PodsNotRunning",
         "waiting for pods to run: 1 of 5 pods has started{least}; not yet 2 of task a, 2 of "
         "task b; pod j-b-1 is on a node that does not answer"),
        ([one_pod("a", 1, "Pending")], "PodsNotRunning",
         "waiting for pods to run: 0 of 5 pods have started{least}; not yet 3 of task a, 2 of "
         "task b; pod j-a-1 is Pending (its Events may say more)"),
        # A pod that cannot start is the worse, and is told before one that has started and ends.
        ([CRASHING, one_pod("a", 2, "Pending", failing="ErrImagePull: no such image"),
          one_pod("b", 0, "Pending", unscheduled=NO_NODE)], "PodsNotStarting",
         "pod j-a-2 cannot start: ErrImagePull: no such image; 1 of 5 pods has started{least}; "
         "not yet 2 of task a, 2 of task b"),
        ([CRASHING], "PodsFailing",
         "pod j-a-1 does not keep running: CrashLoopBackOff; 1 of 5 pods has started{least}; "
         "not yet 2 of task a, 2 of task b"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("phase", "least"), [("Pending", ", 4 are needed"), ("Running", "")])
def test_how_many_pods_have_started_and_why_the_first_has_not(
    pods: list[PodFacts], reason: str, message: str, phase: str, least: str
) -> None:
    why = waiting_reason(running(*pods, phase=phase, least=4), None, NOBODY, admitted=True)
    assert why
    assert (why.reason, why.sentence) == (reason, message.format(least=least))


def test_a_job_whose_pods_have_all_started_waits_for_nothing() -> None:
    pods = [one_pod("a", index, "Running") for index in range(3)]
    pods += [one_pod("b", 0, "Succeeded"), one_pod("b", 1, "Failed")]
    assert (
        waiting_reason(running(*pods, phase="Running", least=4), None, NOBODY, admitted=True)
        is None
    )


def test_of_many_tasks_some_are_named() -> None:
    tasks = [{"name": f"t{number}", "replicas": 2} for number in range(8)]
    why = waiting_reason(draft(tasks=tasks, minAvailable=16), None, NOBODY, admitted=True)
    assert why
    assert why.sentence == (
        "waiting for pods to run: 0 of 16 pods have started; not yet 2 of task t0, 2 of task t1, "
        "2 of task t2, 2 of task t3, 2 of task t4, some of 3 more tasks"
    )


@pytest.mark.parametrize(
    ("reason", "message", "is_told"),
    [
        ("R", "no", True),
        ("R", "no; 1 of 2", True),
        ("R", "no: 1 of 2", True),
        ("R", "nothing", False),
        ("R", "", False),
        ("Q", "no", False),
    ],
)
def test_what_changes_with_each_pod_is_no_news(reason: str, message: str, *, is_told: bool) -> None:
    assert Trouble("R", "no", standing="; 2 of 2").is_told_by(reason, message) is is_told


def test_a_job_that_waits_for_nothing_but_its_pods_makes_no_event() -> None:
    message = "waiting for pods to run: 0 of 2 pods have started"
    assert told(draft()) == ("PodsNotRunning", message, "")


def test_pods_that_are_held_back_are_told_with_their_numbers() -> None:
    held = {"w": IndexSet.of(3, 4)}
    beyond = "pods beyond the minimum are made once it runs (vcjob.dev/minimum-first): 2 of task w"
    started = "0 of 5 pods have started"
    tasks: Any = [{"name": "w", "replicas": 5}]
    why = waiting_reason(draft(tasks=tasks, phase="Running"), None, NOBODY, held, admitted=True)
    assert why == Trouble("MinimumFirst", beyond, "Normal", standing=f"; {started}")
    tasks.append({"name": "late", "replicas": 0, "dependsOn": {"name": ["w"]}})
    late = frozenset({"late"})
    why = waiting_reason(draft(tasks=tasks, phase="Running"), None, late, held, admitted=True)
    message = f"task late waits until w is ready; {beyond}"
    assert why == Trouble(
        "DependsOn", message, "Normal", standing=f"; {started}; not yet 3 of task w"
    )
