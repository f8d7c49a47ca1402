"""What policies say to what happened: lifecycle.md sections 4 and 5."""

from drafts import NOW, draft, pod, timers

from vcjob.api.types import Object
from vcjob.core.actions import Event
from vcjob.core.answering import answer_occurrences
from vcjob.core.draft import Place
from vcjob.core.facts import PodPhase
from vcjob.core.occurrences import Occurrence

FAILED = PodPhase.FAILED


def policy(event: str, action: str, timeout: str) -> Object:
    return {"event": event, "action": action, "timeout": timeout}


def happened(event: Event, index: int) -> Occurrence:
    return Occurrence(event, "it happened", "w", Place("w", index, 0))


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


def test_what_happened_besides_does_not_end_a_second_generation_of_pods_at_once() -> None:
    policies = [
        {"event": "PodFailed", "action": "RestartJob"},
        {"event": "Unknown", "action": "AbortJob"},
    ]
    one = draft([pod(0, FAILED)], policies)
    group = Occurrence(Event.UNKNOWN, "the PodGroup is Unknown")
    answer_occurrences(one, [happened(Event.POD_FAILED, 0), group], NOW)
    assert (one.phase, one.version) == ("Restarting", 1)
