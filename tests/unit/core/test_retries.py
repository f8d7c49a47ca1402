"""Which restarts use up retries: those of events that the Job's annotation does not name."""

import pytest

from vcjob.api.types import Job
from vcjob.core.actions import Action, Event
from vcjob.core.answering import answer_occurrences
from vcjob.core.draft import Draft, Place, begin, carry_out, is_used_up
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import LARGEST_INDEX, NO_INDICES, IndexSet
from vcjob.core.observed import Observed
from vcjob.core.occurrences import occurrences
from vcjob.core.retries import uncounted_events, used_up, with_restart
from vcjob.core.state import encode_state, state_of
from vcjob.core.timers import fire_timers

KEY = "vcjob.dev/uncounted-events"
EVICTED, FAILED = Event.POD_EVICTED, Event.POD_FAILED


def job(text: str = "PodEvicted", **status: object) -> Job:
    return Job.of(
        {
            "metadata": {"name": "lc", "annotations": {KEY: text}},
            "spec": {"maxRetry": 2, "tasks": [{"name": "worker", "replicas": 2}]},
            "status": {"state": {"phase": "Running"}, **status},
        }
    )


def draft(text: str = "PodEvicted", observed: Observed | None = None, **status: object) -> Draft:
    return begin(job(text, **status), observed or Observed(), None)


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("", []),
        ("PodEvicted", ["PodEvicted"]),
        (" PodEvicted ,PodPending,", ["PodEvicted", "PodPending"]),
    ],
)
def test_events_are_read_with_commas_between(text: str, events: list[str]) -> None:
    assert uncounted_events(job(text)) == events


@pytest.mark.parametrize(
    ("retry", "uncounted", "used"),
    [
        (0, NO_INDICES, 0),
        (3, NO_INDICES, 3),
        (3, IndexSet.of(1, 3), 1),
        (1, IndexSet.of(1, 3), 0),  # the status was set back since
        (-1, IndexSet.of(1), -1),
        (10**12, IndexSet.of(1), 10**12 - 1),
    ],
)
def test_retries_that_are_used_up(retry: int, uncounted: IndexSet, used: int) -> None:
    assert used_up(retry, uncounted) == used


@pytest.mark.parametrize("retry", [-1, 0, LARGEST_INDEX + 1, 10**12])
def test_a_count_that_no_controller_wrote_counts(retry: int) -> None:
    assert with_restart(NO_INDICES, retry, counts=False) == NO_INDICES


@pytest.mark.parametrize("action", [Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD])
@pytest.mark.parametrize(
    ("events", "used"),
    [
        ([EVICTED, EVICTED, EVICTED], 0),
        ([EVICTED, FAILED, EVICTED], 1),
        ([FAILED, EVICTED, FAILED], 2),
        (["", EVICTED, EVICTED], 1),  # a Command is no event
    ],
)
def test_only_events_that_are_not_named_use_up_retries(
    action: Action, events: list[str], used: int
) -> None:
    one = draft()
    for count, event in enumerate(events, start=1):
        one.phase = type(one.phase)("Running")
        carry_out(one, action, "because", Place("worker", 0, count - 1), event)
        assert one.retry == count
    assert used_up(one.retry, one.state.uncounted_retries) == used
    assert is_used_up(one) == (used >= 2)


@pytest.mark.parametrize("action", [Action.RESTART_JOB, Action.RESTART_TASK])
def test_a_restart_for_two_reasons_counts_if_one_of_them_does(action: Action) -> None:
    observed = Observed()
    for index in (0, 1):
        name = f"lc-worker-{index}"
        observed.set(PodFacts(name, name, "worker", index, 0, 0, PodPhase.RUNNING))
    for events, used in [((EVICTED, FAILED), 1), ((FAILED, EVICTED), 1), ((EVICTED, EVICTED), 0)]:
        one = draft(observed=observed)
        carry_out(one, Action.RESTART_POD, "because", Place("worker", 0, 0), events[0])
        carry_out(one, action, "because", Place("worker", 1, 0), events[1])
        assert one.retry == 1
        assert used_up(one.retry, one.state.uncounted_retries) == used


def test_what_was_not_counted_is_remembered_also_if_another_controller_went_on_meanwhile() -> None:
    one = draft()
    carry_out(one, Action.RESTART_JOB, "because", None, EVICTED)
    text = encode_state(one.state)
    later = job(version=7, retryCount=2, controlledResources={"vcjob.dev/state": text})
    assert state_of(later).uncounted_retries == IndexSet.of(1)


def test_the_message_says_that_no_retry_was_used_up() -> None:
    one = draft()
    carry_out(one, Action.RESTART_JOB, "pod lc-worker-0 was deleted", None, EVICTED)
    assert one.message == (
        "pod lc-worker-0 was deleted; attempt 1 of 2 goes on, as this restart uses up no retry"
    )


def test_a_restart_within_the_last_attempts_restart_replaces_pods_that_ended_too() -> None:
    # An attempt that still begins is not the end: its pods are all made anew.
    observed = Observed()
    for index, phase in enumerate((PodPhase.RUNNING, PodPhase.FAILED)):
        name = f"lc-worker-{index}"
        ended = phase if phase.is_finished else None
        observed.set(PodFacts(name, name, "worker", index, 0, 0, phase, ended=ended))
    one = draft("", observed)
    carry_out(one, Action.RESTART_POD, "because", Place("worker", 0, 0), FAILED)
    carry_out(one, Action.RESTART_JOB, "because", Place("worker", 1, 0), FAILED)
    assert (one.retry, is_used_up(one)) == (1, False)
    assert one.condemned("worker", observed.task("worker")) == IndexSet.of(0, 1)


@pytest.mark.parametrize("timeout", ["", "5s"])
def test_what_a_policy_for_an_exit_code_answers_is_a_failure_also_if_the_task_failed_with_it(
    timeout: str,
) -> None:
    # Containers that are started again and again end with their code, and make their task fail.
    policy = {"exitCode": 3, "action": "RestartTask", "timeout": timeout}
    worker = {"name": "worker", "replicas": 1, "policies": [policy]}
    observed = Observed()
    pod = PodFacts("p", "p", "worker", 0, 0, 0, PodPhase.RUNNING, exit_codes=(3,), restarts=3)
    observed.set(pod)
    spec = {"maxRetry": 2, "tasks": [worker]}
    metadata = {"name": "lc", "annotations": {KEY: "PodFailed"}}
    status = {"state": {"phase": "Running"}}
    one = begin(Job.of({"metadata": metadata, "spec": spec, "status": status}), observed, None)
    answer_occurrences(one, occurrences(one, "", 0.0), 0.0)
    fire_timers(one, 5.0)
    assert (one.retry, used_up(one.retry, one.state.uncounted_retries)) == (1, 0)


@pytest.mark.parametrize(("retries", "left"), [(0, NO_INDICES), (1, IndexSet.of(0))])
def test_what_succeeded_and_is_gone_stays_so_if_the_last_restart_replaces_nothing(
    retries: int, left: IndexSet
) -> None:
    one = draft("", retryCount=retries)
    one.done["worker"] = IndexSet.of(0)
    carry_out(one, Action.RESTART_TASK, "because", Place("worker", 1, retries), FAILED)
    assert (is_used_up(one), one.done["worker"]) == (retries == 1, left)
