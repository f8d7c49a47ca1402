"""When a gang is taken back, and how long it then pauses."""

from collections.abc import Iterable

import pytest

from vcjob.api.names import GROUP_NAME, TASK_SPEC
from vcjob.api.types import Object
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.ledger import Ledger
from vcjob.core.scheduling.places import Gang
from vcjob.core.scheduling.setbacks import (
    TAKEN_BACK,
    Setbacks,
    is_clearing,
    pods_to_delete,
    taken_back,
)

GRACE = 60.0
KEY = ("x", "lc")
BOUND, REFUSED, HELD, DONE, LEAVING = "bound", "refused", "held", "done", "leaving"


def pod(number: int, how: str) -> Object:
    metadata: Object = {
        "name": f"lc-worker-{number}", "namespace": "x", "uid": f"p{number}",
        "resourceVersion": str(number), "annotations": {GROUP_NAME: "lc", TASK_SPEC: "worker"},
    }  # fmt: skip
    spec: Object = {"nodeName": "n"} if how in (BOUND, DONE, LEAVING) else {}
    status: Object = {"phase": "Succeeded" if how == DONE else "Pending"}
    if how == LEAVING:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if how == HELD:
        spec["schedulingGates"] = [{"name": "ours"}]
    if how == REFUSED:
        status["conditions"] = [{"type": "PodScheduled", "status": "False",
                                 "reason": "Unschedulable", "message": "0/3 nodes."}]  # fmt: skip
    return {"metadata": metadata, "spec": spec, "status": status}


def gang(
    pods: Iterable[str], *, least: int = 3, phase: str = "Inqueue", reason: str = ""
) -> BookedGang:
    ledger = Ledger("ours")
    metadata = {"name": "lc", "namespace": "x", "uid": "g", "resourceVersion": "1"}
    status = {"phase": phase, "conditions": [{"reason": reason}]}
    ledger.enter_group({"metadata": metadata, "spec": {"minMember": least}, "status": status})
    for number, how in enumerate(pods):
        ledger.enter_pod(pod(number, how))
    return ledger.gangs[KEY]


@pytest.mark.parametrize(
    ("stuck", "is_due"),
    [
        (gang([BOUND, REFUSED, REFUSED]), True),
        (gang([BOUND, BOUND, HELD]), False),
        (gang([BOUND, BOUND, DONE, REFUSED]), False),
        (gang([BOUND, REFUSED], least=0), False),
        (gang([BOUND, REFUSED, REFUSED], phase="Running"), False),
        (gang([BOUND, REFUSED, REFUSED], phase="Pending"), False),
    ],
    ids=["lacks nodes", "was told nothing", "has started", "no minimum", "runs", "waits"],
)
def test_who_is_taken_back(stuck: BookedGang, is_due: bool) -> None:
    setbacks = Setbacks(GRACE)
    setbacks.note(KEY, stuck, 100.0)
    assert setbacks.due(100.0 + GRACE - 1) == []
    assert setbacks.due(100.0 + GRACE) == ([KEY] if is_due else [])
    assert setbacks.next_due() == (100.0 + GRACE if is_due else None)
    assert setbacks.next_due(only_pauses=True) is None


def test_each_pod_that_starts_gives_new_time_and_repeated_refusals_do_not() -> None:
    setbacks = Setbacks(GRACE)
    setbacks.note(KEY, gang([REFUSED, REFUSED, REFUSED]), 100.0)
    setbacks.note(KEY, gang([REFUSED, REFUSED, REFUSED]), 150.0)
    assert setbacks.next_due() == 100.0 + GRACE
    setbacks.note(KEY, gang([BOUND, REFUSED, REFUSED]), 150.0)
    assert setbacks.next_due() == 150.0 + GRACE
    setbacks.quiet_since(155.0)
    assert setbacks.next_due() == 155.0 + GRACE
    setbacks.note(KEY, None, 156.0)
    assert setbacks.next_due() is None


def test_pauses_grow_from_the_second_time_on_up_to_a_limit_and_a_start_ends_the_count() -> None:
    setbacks, waiting = Setbacks(GRACE), Gang("g", "lc", "default", {})
    pauses = []
    for _ in range(8):
        setbacks.take_back(KEY, "g", 1000.0)
        due = setbacks.next_due()
        pauses.append(0.0 if due is None else due - 1000.0)
        assert (setbacks.put_off(waiting) is None) == (due is None)
        if due is not None:
            assert not setbacks.end_pauses(due - 1)
            assert setbacks.end_pauses(due)
        assert setbacks.put_off(waiting) is None
    assert pauses == [0, 60, 120, 240, 480, 600, 600, 600]
    setbacks.note(KEY, gang([BOUND, BOUND, BOUND]), 2000.0)
    setbacks.take_back(KEY, "g", 3000.0)
    assert setbacks.put_off(waiting) is None


def test_only_pods_that_were_let_go_are_deleted_and_finished_ones_stay() -> None:
    back = gang([BOUND, REFUSED, HELD, DONE, LEAVING], phase="Pending", reason=TAKEN_BACK)
    assert [one.key[1] for one in pods_to_delete(back)] == ["lc-worker-0", "lc-worker-1"]
    assert is_clearing(back)
    assert is_clearing(gang([LEAVING, HELD], phase="Pending", reason=TAKEN_BACK))
    assert not is_clearing(gang([HELD, DONE], phase="Pending", reason=TAKEN_BACK))
    assert not is_clearing(gang([BOUND], phase="Pending"))
    assert not is_clearing(gang([BOUND], phase="Inqueue", reason=TAKEN_BACK))


def test_what_is_told() -> None:
    assert taken_back("lc", gang([BOUND, REFUSED, REFUSED]), 90.0) == (
        "lc was taken back: 2 of the 3 pods that must start together found no node for 90s, "
        "although there had been room. Its pods are deleted and made anew when there is room "
        "again. The scheduler said: 0/3 nodes"
    )
