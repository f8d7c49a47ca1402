"""One pass over a Job: which stages a plan has when, and that none comes before its record."""

from typing import Any

import msgspec
import pytest

from vcjob.api.names import STATE_KEY, SUSPEND
from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.observed import Observed
from vcjob.core.plan import Plan, plan, recorded_later
from vcjob.core.reasons import MALFORMED, Trouble
from vcjob.core.state import State, encode_state
from vcjob.core.supporting import Create
from vcjob.core.surroundings import Surroundings
from vcjob.core.times import timestamp
from vcjob.local.merge_patch import merge_patch
from vcjob.plugins.registry import installed_plugins

PLUGINS = installed_plugins(third_party=False)
NOW = 1_700_000_000.0
ADMITTED = {"metadata": {"name": "j-u", "namespace": "default", "uid": "g"},
            "spec": {"minMember": 2}, "status": {"phase": "Inqueue"}}  # fmt: skip
WAITING = {**ADMITTED, "status": {"phase": "Pending"}}


def pod(index: int, phase: PodPhase, **more: Any) -> PodFacts:
    ended = phase if phase.is_finished else None
    name = f"j-w-{index}"
    return PodFacts(name, name, "w", index, 0, 0, phase, ended=ended, **more)


def planned(*pods: PodFacts, status: Object | None = None, around: Surroundings | None = None,
            deleted: bool = False, now: float = NOW, suspended: bool = False,
            gone: PodFacts | None = None, **spec: Any) -> Plan:  # fmt: skip
    container = {"name": "main", "image": "none"}
    template = {"spec": {"containers": [container]}}
    task = {"name": "w", "replicas": 2, "minAvailable": 2, "template": template}
    metadata: Object = {"name": "j", "namespace": "default", "uid": "u"}
    if deleted:
        metadata["deletionTimestamp"] = timestamp(NOW)
    if suspended:
        metadata["annotations"] = {SUSPEND: "true"}
    whole = {
        "metadata": metadata,
        "spec": {"tasks": [task], "minAvailable": 2, **spec},
        "status": status or {},
    }
    job = Job.of(whole)
    observed = Observed()
    for facts in pods:
        observed.set(facts)
    if gone:
        observed.gone[gone.task, gone.index] = gone
    around = around or Surroundings(group=ADMITTED)
    return plan(job, status or {}, observed, around, Blueprint(job, PLUGINS), now)


def at(phase: str, **more: Any) -> Object:
    return {"state": {"phase": phase, "lastTransitionTime": timestamp(NOW)}, **more}


def phase_of(found: Plan) -> Any:
    return (found.record or {}).get("state", {}).get("phase")


def test_a_new_job_is_first_recorded_and_nothing_else() -> None:
    found = planned(around=Surroundings())
    assert phase_of(found) == "Pending"
    assert (found.ensure, found.create, found.remove, found.amend) == ((), (), (), None)
    assert found.again == NOW, "what comes next is planned once that is recorded"


def test_a_pending_job_has_its_objects_and_group_made_before_any_pod() -> None:
    found = planned(status=at("Pending"), around=Surroundings(), plugins={"svc": []})
    kinds = [step.kind.kind for step in found.ensure if isinstance(step, Create)]
    assert kinds[-1] == "PodGroup"
    assert {"ConfigMap", "Service"} <= set(kinds)
    assert found.create == ()


def test_pods_are_made_once_the_group_is_admitted() -> None:
    assert planned(status=at("Pending"), around=Surroundings(group=WAITING)).create == ()
    assert planned(status=at("Pending")).create == (("w", 0), ("w", 1))
    assert planned(pod(0, PodPhase.RUNNING), status=at("Pending")).create == (("w", 1),)


def test_the_phase_changes_by_itself_and_that_pass_makes_nothing() -> None:
    running = [pod(0, PodPhase.RUNNING), pod(1, PodPhase.RUNNING)]
    found = planned(*running, status=at("Pending"))
    assert (phase_of(found), found.create, found.again) == ("Running", (), NOW)


def test_a_policy_is_recorded_in_one_pass_and_pods_go_with_the_next_generation() -> None:
    failed = [pod(0, PodPhase.RUNNING), pod(1, PodPhase.FAILED, exit_codes=(1,))]
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    found = planned(*failed, status=at("Running"), policies=policies)
    assert phase_of(found) == "Restarting"
    assert found.record is not None
    assert (found.record["version"], found.record["retryCount"]) == (1, 1)
    assert {facts.name for facts in found.remove} == {"j-w-0", "j-w-1"}
    assert found.remove_group is not None, "its phase would admit the new pods"
    assert found.create == ()
    assert found.heard == {("w", 1)}


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    assert planned(pod(0, PodPhase.RUNNING), status=at("Running"), deleted=True) == Plan()


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        (Surroundings(queue_exists=False), "QueueNotFound"),
        (Surroundings(group=ADMITTED, absent_claims=("data",)), "PVCError"),
        (Surroundings(group=ADMITTED, trouble=Trouble("Quota", "used up")), "Quota"),
    ],
)
def test_what_is_in_the_way_is_told_and_nothing_made(around: Surroundings, reason: str) -> None:
    found = planned(status=at("Pending"), around=around)
    assert (found.ensure, found.create) == ((), ())
    assert found.record is not None
    assert found.record["state"]["reason"] == reason
    assert [one.reason for one in found.tell] == [reason]
    told = at("Pending")
    told["state"] |= found.record["state"]
    assert planned(status=told, around=around).tell == (), "it is told once"


def test_what_failed_last_time_is_tried_again_in_its_turn() -> None:
    trouble = Trouble("Quota", "used up")
    again = Surroundings(group=ADMITTED, trouble=trouble, attempt=True)
    assert planned(status=at("Pending"), around=again).create == (("w", 0), ("w", 1))


def test_pods_of_a_job_that_nobody_can_read_stay() -> None:
    around = Surroundings(group=ADMITTED, trouble=Trouble(MALFORMED, "tasks must be a list"))
    running = [pod(0, PodPhase.RUNNING), pod(1, PodPhase.RUNNING)]
    found = planned(*running, status=at("Running"), around=around, tasks=[])
    assert found.remove == ()


@pytest.mark.parametrize(("later", "gone"), [(9.0, False), (10.0, True)])
def test_a_job_is_deleted_when_its_time_to_live_is_over(later: float, gone: bool) -> None:
    found = planned(status=at("Completed"), now=NOW + later, ttlSecondsAfterFinished=10)
    assert found.delete_job is gone
    assert found.again == NOW + 10


@pytest.mark.parametrize("gone", [True, False])
def test_who_succeeded_and_went_just_before_the_job_is_suspended_has_succeeded(gone: bool) -> None:
    one = pod(1, PodPhase.SUCCEEDED)
    going = msgspec.structs.replace(one, phase=PodPhase.TERMINATING)
    pods = [pod(0, PodPhase.RUNNING), *([] if gone else [going])]
    found = planned(*pods, gone=one if gone else None, suspended=True, status=at("Running"))
    assert phase_of(found) == "Aborting"
    assert found.record is not None
    assert found.record["succeeded" if gone else "terminating"] == 1
    assert '"d":{"w":"1"}' in found.record["controlledResources"][STATE_KEY]


def test_a_record_that_only_informs_may_come_later() -> None:
    running = [pod(0, PodPhase.RUNNING), pod(1, PodPhase.RUNNING)]
    status = at("Running")
    first = planned(*running, status=status)
    assert first.record is not None
    status = merge_patch(status, first.record)
    assert planned(*running, status=status).record is None
    ended = planned(pod(0, PodPhase.SUCCEEDED), running[1], status=status)
    assert ended.record is not None
    assert ended.record["succeeded"] == 1
    later = recorded_later(ended, status)
    assert later is not None
    assert later.record is None
    cleaned = planned(running[1], gone=pod(0, PodPhase.SUCCEEDED), status=status)
    assert recorded_later(cleaned, status) is None, "nothing else tells that it succeeded"
    scaled = planned(*running, pod(2, PodPhase.RUNNING), status=status)
    assert [facts.name for facts in scaled.remove] == ["j-w-2"]
    assert recorded_later(scaled, status) is None, "else our own deletion looks like an eviction"
    assert recorded_later(planned(around=Surroundings()), {}) is None, "it changes the phase"


WHY = "a Command asked for it"
OLD = [pod(0, PodPhase.RUNNING), pod(1, PodPhase.TERMINATING), pod(2, PodPhase.FAILED)]
TWO_END = "; waiting for 2 pods to end: j-w-0, j-w-1"
BLOCKED = Surroundings(queue_exists=False)
NO_QUEUE = (
    '; it cannot go on: the queue "default" does not exist: create it, or create the Job anew with '
    "another in spec.queue"
)
NO_ROOM = {
    **WAITING,
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "Unschedulable", "status": "True", "message": "no room"}],
    },
}


def said(found: Plan, status: Object) -> tuple[str, str]:
    state = merge_patch(status, found.record or {})["state"]
    return state["reason"], state["message"]


@pytest.mark.parametrize(
    ("phase", "before", "reason", "message"),
    [
        ("Aborting", "", "Some", WHY + TWO_END),
        ("Aborting", "; waiting for 7 pods to end: a, b, c, …", "Some", WHY + TWO_END),
        ("Completing", "", "Some", WHY + TWO_END),
        ("Terminating", "", "Some", WHY + TWO_END),
        ("Restarting", "", "Restarting", f"{WHY}; waiting for 3 pods to go: j-w-0, j-w-1, j-w-2"),
    ],
)
def test_how_many_old_pods_are_still_there(
    phase: str, before: str, reason: str, message: str
) -> None:
    status = at(phase, version=1)
    status["state"] |= {"reason": "Some", "message": WHY + before}
    status["controlledResources"] = {STATE_KEY: encode_state(State(end=len(before), version=1))}
    found = planned(*OLD, status=status)
    assert said(found, status) == (reason, message)
    assert found.tell == ()
    status = merge_patch(status, found.record)
    found = planned(OLD[2], status=status)
    if phase == "Restarting":
        assert said(found, status)[1] == f"{WHY}; waiting for 1 pod to go: j-w-2"
    else:
        end = "; it goes on when it is resumed" if phase == "Aborting" else ""
        assert said(found, status) == ("Some", WHY + end), "it has ended, for the same reason"
        status = merge_patch(status, found.record)
        assert planned(OLD[2], status=status).record is None, "and says so once"


@pytest.mark.parametrize(("phase", "how"), [("Aborting", "end"), ("Restarting", "go")])
def test_what_volcano_has_decided_has_no_reason_to_go_before_that(phase: str, how: str) -> None:
    status = at(phase, version=1)
    for index, left in enumerate((OLD[:2], OLD[:1])):
        names = "j-w-0" if index else "j-w-0, j-w-1"
        status = merge_patch(status, planned(*left, status=status).record)
        pods = "1 pod" if index else "2 pods"
        assert status["state"]["message"] == f"waiting for {pods} to {how}: {names}"


def test_a_restart_says_what_keeps_its_new_pods_from_coming() -> None:
    status = at("Restarting", version=1)
    status["state"] |= {"reason": "RestartJob", "message": f"{WHY}; attempt 2 of 3 begins"}
    course = [
        (BLOCKED, "QueueNotFound", NO_QUEUE, 1),
        (BLOCKED, "QueueNotFound", NO_QUEUE, 0),
        (Surroundings(), "Restarting", '; waiting to be admitted by the queue "default"', 0),
        (Surroundings(group=NO_ROOM), "PodGroupPending",
         "; it cannot go on: PodGroup of j is unschedulable: no room", 1),
        (Surroundings(group=NO_ROOM), "PodGroupPending",
         "; it cannot go on: PodGroup of j is unschedulable: no room", 0),
    ]  # fmt: skip
    for around, reason, end, events in course:
        found = planned(status=status, around=around)
        assert said(found, status) == (reason, f"{WHY}; attempt 2 of 3 begins{end}")
        assert len(found.tell) == events
        status = merge_patch(status, found.record or {})
    assert phase_of(planned(status=status)) == "Pending"


def test_a_job_that_fails_for_its_retries_says_so_whatever_else_is_missing() -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    running, claim = pod(0, PodPhase.RUNNING), Surroundings(absent_claims=("data",))
    status = at("Running")
    for phase in ("Restarting", "Failed"):
        found = planned(
            running, pod(1, PodPhase.FAILED), status=status, around=claim,
            policies=policies, maxRetry=1,
        )  # fmt: skip
        assert phase_of(found) == phase
        status = merge_patch(status, found.record)
    assert status["state"]["reason"] == "MaxRetry"
    assert status["state"]["message"] == (
        "pod j-w-1 failed (policy for PodFailed); that was the only attempt (maxRetry), "
        "so the Job fails"
    )


def test_what_is_in_the_way_of_some_pods_is_told_with_how_many_have_started() -> None:
    around = Surroundings(group=ADMITTED, absent_claims=("a", "b"))
    status = at("Running")
    message = "the claims a, b do not exist: create them; 1 of 2 pods has started"
    found = planned(pod(0, PodPhase.RUNNING), status=status, around=around)
    assert said(found, status) == ("PVCError", message)
    assert [one.message for one in found.tell] == ["the claims a, b do not exist: create them"]
    whole = [pod(0, PodPhase.RUNNING), pod(1, PodPhase.RUNNING)]
    status = merge_patch(status, found.record)
    found = planned(*whole, status=status, around=around)
    assert found.tell == ()
    assert said(found, status) == ("PVCError", "the claims a, b do not exist: create them")
