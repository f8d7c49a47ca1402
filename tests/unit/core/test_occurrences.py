"""What has happened to a Job's pods, told from what is there now."""

from typing import Any

import pytest

from vcjob.api.types import Job
from vcjob.core.actions import Event
from vcjob.core.draft import Draft, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.observed import Observed
from vcjob.core.occurrences import is_current, most_restarts, occurrences
from vcjob.core.state import State, Target, encode_state

NOW = 1000.0
P, R, S = PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED
F, T = PodPhase.FAILED, PodPhase.TERMINATING


def pod(index: int, phase: PodPhase, version: int = 0, retry: int = 0, **more: Any) -> PodFacts:
    name = f"j-w-{index}"
    more.setdefault("ended", phase if phase.is_finished else None)
    return PodFacts(name, name, "w", index, version, retry, phase, **more)


def draft(*pods: PodFacts, replicas: int = 3, state: State | None = None, version: int = 0,
          gone: tuple[PodFacts, ...] = (), policies: Any = None, group: Any = None,
          **task: Any) -> Draft:  # fmt: skip
    observed = Observed()
    for facts in (*pods, *gone):
        observed.set(facts)
    for facts in gone:
        observed.remove(facts)
    status: dict[str, Any] = {"state": {"phase": "Running"}, "version": version}
    if state:
        status["controlledResources"] = {"vcjob.dev/state": encode_state(state)}
    any_policy = [{"event": "*", "action": "RestartJob"}]
    whole: Any = {
        "metadata": {"name": "j"},
        "spec": {
            "tasks": [{"name": "w", "replicas": replicas, **task}],
            "policies": any_policy if policies is None else policies,
        },
        "status": status,
    }
    return begin(Job.of(whole), observed, group)


def found(one: Draft, group: str = "Running") -> list[tuple[str, str]]:
    return [(str(it.event), it.cause) for it in occurrences(one, group, NOW)]


@pytest.mark.parametrize(
    ("facts", "event", "cause"),
    [
        (pod(0, F, exit_codes=(3,)), Event.POD_FAILED, "pod j-w-0 failed with exit code 3"),
        (pod(0, F, exit_codes=(3, 4, 3)), Event.POD_FAILED,
         "pod j-w-0 failed with exit codes 3, 4"),
        (pod(0, F), Event.POD_FAILED, "pod j-w-0 failed"),
        (pod(0, F, exit_codes=(137,), ended_by="OOMKilled"), Event.POD_FAILED,
         "pod j-w-0 failed with exit code 137 (OOMKilled)"),
        (pod(0, F, ended_by="DeadlineExceeded"), Event.POD_FAILED,
         "pod j-w-0 failed (DeadlineExceeded)"),
        (pod(0, F, evicted=True, exit_codes=(137,)), Event.POD_EVICTED, "pod j-w-0 was evicted"),
        (pod(0, R, restarts=3), Event.TASK_FAILED, "containers of pod j-w-0 restarted 3 times"),
        (pod(0, R, exit_codes=(9,)), Event.POD_FAILED,
         "a container of pod j-w-0 ended with exit code 9"),
        # It failed before anybody deleted it.
        (pod(0, T, ended=F, exit_codes=(1,)), Event.POD_FAILED,
         "pod j-w-0 failed with exit code 1"),
    ],
)  # fmt: skip
def test_what_a_pod_tells(facts: PodFacts, event: Event, cause: str) -> None:
    assert found(draft(facts)) == [(event, cause)]


@pytest.mark.parametrize(
    "facts",
    [
        pod(0, P),
        pod(0, R),
        pod(0, R, restarts=2),
        pod(0, S),  # one of three: the task is not complete
        pod(0, T, exit_codes=(143,)),  # an eviction only once it is gone
        pod(0, F, marked=True),  # a controller is about to delete it
        pod(5, F),  # of a larger Job
    ],
)
def test_what_tells_nothing(facts: PodFacts) -> None:
    assert found(draft(facts)) == []


def test_what_happened_to_pods_of_an_older_version_or_before_a_restart_is_over() -> None:
    state = State(version=1, retry=0, targets=(Target("w", "0", 1),))
    one = draft(pod(0, F), pod(1, F, version=1), pod(2, F, version=1), version=1, state=state)
    assert [place for place, facts in one.observed.pods.items() if is_current(one, facts)] == [
        ("w", 1), ("w", 2),
    ]  # fmt: skip
    later = draft(pod(0, F, version=1, retry=1), version=1, state=state)
    assert is_current(later, later.observed.pods["w", 0])


@pytest.mark.parametrize(
    ("one", "evicted"),
    [
        (draft(state=State(alive={"w": "0-1"})), [0, 1]),
        (draft(pod(0, R), state=State(alive={"w": "0-1"})), [1]),
        (draft(gone=(pod(1, R),)), [1]),
        # Those that a controller has marked were not taken by anybody else.
        (draft(state=State(alive={"w": "1"}), gone=(pod(1, R, marked=True),)), []),
        # What succeeded was cleaned up; what is beyond the replicas was scaled away.
        (draft(gone=(pod(1, S),)), []),
        (draft(state=State(alive={"w": "0-9"}), replicas=1), [0]),
    ],
)
def test_pods_that_are_missing_were_evicted(one: Draft, evicted: list[int]) -> None:
    assert found(one) == [("PodEvicted", f"pod j-w-{index} was deleted") for index in evicted]


def test_pods_of_a_gang_that_was_taken_back_were_evicted_only_if_somebody_saw_it() -> None:
    conditions = [{"reason": "TakenBack", "status": "False"}, {"reason": "Fits", "status": "True"}]
    group = {"metadata": {"uid": "g"}, "status": {"phase": "Inqueue", "conditions": conditions}}
    lived = State(alive={"w": "0-1"})
    assert found(draft(state=lived, group=group)) == []
    assert found(draft(state=lived, group=group, gone=(pod(1, R),))) == [
        ("PodEvicted", "pod j-w-1 was deleted")
    ]


def test_a_pod_that_had_failed_before_it_vanished_failed() -> None:
    one = draft(gone=(pod(1, F, exit_codes=(2,)),))
    assert found(one) == [("PodFailed", "pod j-w-1 failed with exit code 2")]
    one.observed.attention.clear()  # a policy was asked about it
    assert found(one) == []


def test_a_task_is_complete_when_the_last_of_its_pods_is_also_if_some_are_cleaned_up() -> None:
    pods = [pod(index, S, finished=float(index)) for index in range(3)]
    assert found(draft(*pods)) == [("TaskCompleted", "all 3 pods of task w succeeded")]
    assert found(draft(*pods[:2])) == []
    rest = draft(*pods[:2], state=State(done={"w": "2"}))
    assert found(rest) == [("TaskCompleted", "all 3 pods of task w succeeded")]
    only = draft(pods[0], replicas=1)
    assert found(only) == [("TaskCompleted", "the only pod of task w succeeded")]


def test_what_happened_first_comes_first_and_a_group_that_is_unknown_happens_now() -> None:
    one = draft(pod(0, F, finished=30.0), pod(1, F, finished=10.0), pod(2, F, finished=30.0))
    causes = [cause for _, cause in found(one, "Unknown")]
    assert causes == [
        "pod j-w-1 failed", "pod j-w-0 failed", "pod j-w-2 failed",
        "the PodGroup's phase is Unknown",
    ]  # fmt: skip


def test_where_no_policy_can_answer_nothing_is_looked_for() -> None:
    assert found(draft(pod(0, F), policies=[])) == []


@pytest.mark.parametrize(
    ("given", "most"), [({}, 3), ({"maxRetry": 5}, 5), ({"maxRetry": -1}, None)]
)
def test_how_many_restarts_fail_a_task(given: dict[str, Any], most: int | None) -> None:
    assert most_restarts(draft(**given).job.spec.tasks[0]) == most
