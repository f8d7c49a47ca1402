"""What is read of a pod."""

from typing import Any

import pytest

from vcjob.api.names import JOB_RETRY_COUNT, JOB_VERSION, TASK_INDEX, TASK_SPEC
from vcjob.api.types import Object
from vcjob.core.facts import PodPhase, pod_facts

ANNOTATIONS = {TASK_SPEC: "w", TASK_INDEX: "2", JOB_VERSION: "1", JOB_RETRY_COUNT: "3"}
NOON = "2026-01-01T12:00:00Z"
LATER = "2026-01-01T12:00:40Z"  # a deletion asked for at 12:00:10 with 30 s of grace


def pod(status: Object | None = None, name: str = "lc-w-2", **metadata: Any) -> Object:
    own = {"name": name, "uid": "u", "annotations": ANNOTATIONS, **metadata}
    return {"metadata": own, "status": status or {}}


def ended(code: int, at: str = NOON) -> Object:
    return {"state": {"terminated": {"exitCode": code, "finishedAt": at}}}


def test_a_pods_place_and_attempt_are_in_its_annotations() -> None:
    facts = pod_facts(pod())
    assert facts
    assert (facts.task, facts.index, facts.version, facts.retry) == ("w", 2, 1, 3)
    assert facts.phase is PodPhase.PENDING


@pytest.mark.parametrize(
    "without",
    [
        {"annotations": {}},
        {"annotations": {**ANNOTATIONS, JOB_VERSION: "x"}},
        {"annotations": {**ANNOTATIONS, TASK_INDEX: "-1"}},
        {"annotations": {**ANNOTATIONS, TASK_INDEX: "99999999999"}},
        {"name": "lc-w-3"},
    ],
)
def test_a_pod_that_is_no_replica_has_no_facts(without: Any) -> None:
    assert pod_facts(pod(**without)) is None


@pytest.mark.parametrize(
    ("status", "codes"),
    [
        ({"phase": "Failed", "containerStatuses": [ended(3)]}, (3,)),
        ({"phase": "Failed", "containerStatuses": [ended(0), ended(7)]}, (7,)),
        (
            {
                "phase": "Failed",
                "initContainerStatuses": [ended(5)],
                "containerStatuses": [ended(7)],
            },
            (7, 5),
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {"state": {"running": {}}, "lastState": ended(9)["state"], "restartCount": 1}
                ],
            },
            (9,),
        ),
    ],
)
def test_exit_codes_are_those_of_every_containers_last_end(status: Any, codes: Any) -> None:
    facts = pod_facts(pod(status))
    assert facts
    assert facts.exit_codes == codes


@pytest.mark.parametrize(
    ("status", "metadata", "how", "evicted"),
    [
        ({"phase": "Failed", "containerStatuses": [ended(1)]}, {}, PodPhase.FAILED, False),
        ({"phase": "Succeeded", "containerStatuses": [ended(0)]}, {}, PodPhase.SUCCEEDED, False),
        # It had ended before somebody deleted it.
        ({"phase": "Failed", "containerStatuses": [ended(1)]},
         {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": 30}, PodPhase.FAILED, False),
        # It ended because somebody deleted it.
        ({"phase": "Failed", "containerStatuses": [ended(143, "2026-01-01T12:00:11Z")]},
         {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": 30}, None, False),
        ({"phase": "Failed", "reason": "Evicted"}, {}, PodPhase.FAILED, True),
        ({"phase": "Succeeded", "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
         {}, PodPhase.FAILED, True),
        ({"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
         {}, None, True),
        ({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "False"}]},
         {}, PodPhase.FAILED, False),
    ],
)  # fmt: skip
def test_whether_a_pod_ended_by_itself(status: Any, metadata: Any, how: Any, evicted: bool) -> None:
    facts = pod_facts(pod(status, **metadata))
    assert facts
    assert (facts.ended, facts.evicted) == (how, evicted)
    assert (facts.phase is PodPhase.TERMINATING) == ("deletionTimestamp" in metadata)


@pytest.mark.parametrize(
    ("reason", "message", "failing"),
    [
        ("ImagePullBackOff", "", "ImagePullBackOff"),
        ("ErrImagePull", "no\n such  image.", "ErrImagePull: no such image"),
        ("CrashLoopBackOff", "back-off 10s", "CrashLoopBackOff"),
        ("CreateContainerError", "x" * 400, f"CreateContainerError: {'x' * 299}…"),
        ("ContainerCreating", "", ""),
        ("ContainerCreating", "no claim.", "no claim"),
        ("", "", ""),
    ],
)
def test_why_a_container_cannot_start(reason: str, message: str, failing: str) -> None:
    waiting = {
        "phase": "Pending",
        "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}],
    }
    facts = pod_facts(pod(waiting))
    assert facts
    assert facts.failing == failing


@pytest.mark.parametrize(
    ("condition", "phase", "unscheduled"),
    [
        ({"status": "False", "reason": "Unschedulable", "message": "no room."}, "Pending",
         "no room"),
        ({"status": "False", "reason": "SchedulingGated"}, "Pending", "SchedulingGated"),
        ({"status": "False"}, "Pending", "no reason given"),
        ({"status": "False", "message": "no room"}, "Failed", ""),
        ({"status": "True"}, "Pending", ""),
        ({"type": "Ready", "status": "False", "message": "not yet"}, "Pending", ""),
    ],
)  # fmt: skip
def test_why_a_pod_has_no_node(condition: Object, phase: str, unscheduled: str) -> None:
    facts = pod_facts(pod({"phase": phase, "conditions": [{"type": "PodScheduled", **condition}]}))
    assert facts
    assert facts.unscheduled == unscheduled


def terminated(code: int, reason: str) -> Object:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": NOON}}}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Failed", "containerStatuses": [terminated(1, "Error")]}, ""),
        ({"phase": "Succeeded", "containerStatuses": [terminated(0, "Completed")]}, ""),
        ({"phase": "Failed", "containerStatuses": [ended(1)]}, ""),
        ({"phase": "Failed", "containerStatuses": [terminated(137, "OOMKilled")]}, "OOMKilled"),
        (
            {
                "phase": "Failed",
                "containerStatuses": [terminated(0, "Completed"), terminated(128, "StartError")],
            },
            "StartError",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [terminated(1, "Error")],
                "initContainerStatuses": [terminated(137, "OOMKilled")],
            },
            "",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {"state": {"running": {}}, "lastState": terminated(137, "OOMKilled")["state"]}
                ],
            },
            "OOMKilled",
        ),
        (
            {
                "phase": "Failed",
                "reason": "DeadlineExceeded",
                "containerStatuses": [terminated(143, "Error")],
            },
            "DeadlineExceeded",
        ),
    ],
)
def test_what_ended_a_pod_from_outside_has_a_word(status: Object, word: str) -> None:
    facts = pod_facts(pod(status))
    assert facts
    assert facts.ended_by == word
