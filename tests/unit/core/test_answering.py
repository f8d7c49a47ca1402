"""Timers of policies, and Commands: lifecycle.md sections 5 and 8."""

from typing import Any

import pytest

from vcjob.api.types import Job, Object
from vcjob.core.actions import Event
from vcjob.core.answering import (
    answer_occurrences,
    arm_pending,
    drop_timers,
    fire_timers,
    obey_annotation,
    obey_commands,
)
from vcjob.core.draft import Draft, Place, begin
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.observed import Observed
from vcjob.core.occurrences import Occurrence
from vcjob.core.state import State, Timer, encode_state

NOW = 1000.0
RUNNING, PENDING, FAILED = PodPhase.RUNNING, PodPhase.PENDING, PodPhase.FAILED


def policy(event: str, action: str, timeout: str) -> Object:
    return {"event": event, "action": action, "timeout": timeout}


def draft(
    pods: list[PodFacts],
    policies: Any = (),
    phase: str = "Running",
    state: State | None = None,
    annotations: Any = None,
) -> Draft:
    observed = Observed()
    for facts in pods:
        observed.set(facts)
    status: Object = {"state": {"phase": phase}}
    if state:
        status["controlledResources"] = {"vcjob.dev/state": encode_state(state)}
    whole = {
        "metadata": {"name": "lc", "annotations": annotations or {}},
        "spec": {"tasks": [{"name": "w", "replicas": 4}], "policies": policies},
        "status": status,
    }
    return begin(Job.of(whole), observed, None)


def pod(index: int, phase: PodPhase, **more: Any) -> PodFacts:
    ended = phase if phase.is_finished else None
    name = f"lc-w-{index}"
    return PodFacts(name, name, "w", index, 0, 0, phase, ended=ended, **more)


def happened(event: Event, index: int) -> Occurrence:
    return Occurrence(event, "it happened", "w", Place("w", index, 0))


def timers(one: Draft) -> list[tuple[str, str, float, str]]:
    return [(t.event, t.action, t.due, t.indices) for t in one.state.timers]


def test_a_policy_with_a_timeout_starts_a_timer_and_says_so() -> None:
    one = draft([pod(0, FAILED)], [policy("PodFailed", "RestartJob", "90s")])
    answer_occurrences(one, [happened(Event.POD_FAILED, 0)], NOW)
    assert timers(one) == [("PodFailed", "RestartJob", 1090.0, "0")]
    assert one.phase == "Running"
    assert one.told[0].message == (
        "Execute action RestartJob after 1m30s, unless its reason is gone by then: "
        "it happened (policy for PodFailed)"
    )


def test_a_second_event_of_a_pod_with_the_same_action_does_not_start_the_time_anew() -> None:
    policies = [policy("PodFailed", "RestartJob", "90s"), policy("PodEvicted", "RestartJob", "5s")]
    one = draft([pod(0, FAILED)], policies)
    answer_occurrences(one, [happened(Event.POD_FAILED, 0)], NOW)
    answer_occurrences(one, [happened(Event.POD_EVICTED, 0)], NOW + 1)
    assert timers(one) == [("PodFailed", "RestartJob", 1090.0, "0")]


def test_a_second_event_of_a_pod_with_another_action_takes_the_place() -> None:
    policies = [policy("PodFailed", "RestartJob", "90s"), policy("PodEvicted", "AbortJob", "5s")]
    one = draft([pod(0, FAILED), pod(1, FAILED)], policies)
    both = [happened(Event.POD_FAILED, 0), happened(Event.POD_FAILED, 1)]
    answer_occurrences(one, both, NOW)
    assert timers(one) == [("PodFailed", "RestartJob", 1090.0, "0-1")]
    answer_occurrences(one, [happened(Event.POD_EVICTED, 0)], NOW)
    assert timers(one) == [
        ("PodFailed", "RestartJob", 1090.0, "1"),
        ("PodEvicted", "AbortJob", 1005.0, "0"),
    ]


def test_pods_that_are_pending_have_one_timer_each() -> None:
    one = draft([pod(0, PENDING), pod(1, RUNNING), pod(2, PENDING)],
                [policy("PodPending", "AbortJob", "10s")])  # fmt: skip
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


def test_what_happened_besides_does_not_end_a_second_generation_of_pods_at_once() -> None:
    policies = [
        {"event": "PodFailed", "action": "RestartJob"},
        {"event": "Unknown", "action": "AbortJob"},
    ]
    one = draft([pod(0, FAILED)], policies)
    group = Occurrence(Event.UNKNOWN, "the PodGroup is Unknown")
    answer_occurrences(one, [happened(Event.POD_FAILED, 0), group], NOW)
    assert (one.phase, one.version) == ("Restarting", 1)


def test_of_two_that_are_due_the_first_restart_takes_the_others_reason_away() -> None:
    whole = Timer("PodFailed", "RestartTask", NOW - 2, "w", "0")
    single = Timer("PodPending", "RestartPod", NOW - 1, "w", "1")
    one = draft([pod(0, FAILED), pod(1, PENDING)], state=State(timers=(whole, single)))
    fire_timers(one, NOW)
    assert [target.indices for target in one.state.targets] == ["0-3"]
    assert [told.reason for told in one.told] == ["ExecuteAction"]


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


def command(name: str, action: str, at: str) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": at}
    return {"metadata": metadata, "action": action}


def test_commands_are_obeyed_oldest_first_one_with_an_effect_at_a_time_and_once() -> None:
    commands = [
        command("b", "ResumeJob", "2026-01-01T00:00:02Z"),
        command("a", "AbortJob", "2026-01-01T00:00:01Z"),
    ]
    one = draft([])
    assert obey_commands(one, commands)
    assert (one.phase, one.state.commands) == ("Aborting", ("uid-a",))
    assert obey_commands(one, commands)
    assert (one.phase, one.state.commands) == ("Restarting", ("uid-a", "uid-b"))
    assert not obey_commands(one, commands)
    assert not obey_commands(one, []), "what is gone need not be remembered"
    assert one.state.commands == ()


def test_an_unknown_command_does_nothing_but_say_so() -> None:
    one = draft([])
    assert not obey_commands(one, [command("odd", "Explode", "")])
    assert one.phase == "Running"
    assert "Explode" in one.told[0].message


@pytest.mark.parametrize(
    ("value", "before", "phase", "then"),
    [
        ("true", False, "Running", "Aborting"),
        ("true", True, "Running", "Running"),  # it was acted upon; a Command resumed since
        ("True", False, "Pending", "Aborting"),
        (None, True, "Aborted", "Restarting"),
        ("false", True, "Aborting", "Restarting"),
        (None, False, "Aborted", "Aborted"),  # a Command suspended it
        ("true", False, "Completed", "Completed"),
    ],
)
def test_the_annotation_is_acted_upon_when_it_changes(
    value: str | None, before: bool, phase: str, then: str
) -> None:
    annotations = {} if value is None else {"vcjob.dev/suspend": value}
    one = draft([], phase=phase, state=State(suspended=before), annotations=annotations)
    obey_annotation(one)
    assert one.phase == then
