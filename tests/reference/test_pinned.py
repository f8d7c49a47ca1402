"""What the comparison with recordings finds wrong: each kind of fault, by an example."""

from typing import Any

import msgspec
import pytest
from pinned import Pinned, PinnedDifference, faults, pinned
from recounting import Recount

from vcjob.api.names import TASK_INDEX, TASK_SPEC
from vcjob.controller.cluster import EventType, WatchEvent

NAME = "20-job-deleted"
ROW = 32


def _pinned(**changes: Any) -> Pinned:
    one = PinnedDifference(rows=(ROW,), volcano=1, ours=2)
    return {"3": {"job.version": msgspec.structs.replace(one, **changes)}}


def test_what_is_pinned_is_right() -> None:
    assert not faults(NAME, _pinned(), _pinned(rows=()))


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        (_pinned(), _pinned(ours=3), "pinned 1 -> 2"),
        (_pinned(), _pinned(volcano=0), "pinned 1 -> 2"),
        (_pinned(), {}, "no longer different"),
        ({}, _pinned(), "not pinned"),
        (_pinned(rows=()), _pinned(), "no row of docs/compatibility.md is named"),
        (_pinned(rows=(ROW, 4)), _pinned(), "row 4 does not name this recording"),
        ({}, {}, f"row {ROW} names it without need"),
    ],
)
def test_anything_else_is_a_fault(expected: Pinned, found: Pinned, said: str) -> None:
    assert any(said in fault for fault in faults(NAME, expected, found))


def test_each_pinned_difference_is_one() -> None:
    for steps in pinned().values():
        for by_field in steps.values():
            for one in by_field.values():
                assert one.volcano != one.ours


class _Seen:
    """A Job ``u`` of task ``worker``, with one change after another."""

    def __init__(self) -> None:
        self.recount = Recount()
        self.version = 0

    def pod(self, phase: str, *, deleted: bool = False) -> None:
        self.version += 1
        metadata = {
            "name": "lc-worker-0", "resourceVersion": str(self.version),
            "ownerReferences": [{"uid": "u"}],
            "annotations": {TASK_SPEC: "worker", TASK_INDEX: "0"},
        }  # fmt: skip
        kind = EventType.DELETED if deleted else EventType.MODIFIED
        self.recount.saw_pod(WatchEvent(kind, {"metadata": metadata, "status": {"phase": phase}}))

    def status(self, **counters: int) -> None:
        self.version += 1
        by_phase = {name.capitalize(): number for name, number in counters.items()}
        status = {
            **counters,
            "taskStatusCount": {"worker": {"phase": by_phase}} if by_phase else {},
        }
        metadata = {"uid": "u", "resourceVersion": str(self.version)}
        job = {"metadata": metadata, "status": {"state": {}, **status}}
        self.recount.saw_job(WatchEvent(EventType.MODIFIED, job))


def test_a_status_may_be_late() -> None:
    seen = _Seen()
    seen.pod("Pending")
    seen.pod("Running")
    seen.status(pending=1)
    assert not list(seen.recount.never_true())
    shown, counted = seen.recount.now()
    assert shown != counted


@pytest.mark.parametrize("statuses", [[{"running": 2}], [{"running": 1}, {"pending": 1}], [{}]])
def test_a_status_is_neither_wrong_nor_older_than_the_last(statuses: list[dict[str, int]]) -> None:
    seen = _Seen()
    seen.pod("Pending")
    seen.status(pending=1)
    seen.pod("Running")
    for status in statuses:
        seen.status(**status)
    assert list(seen.recount.never_true())


@pytest.mark.parametrize("by_the_test", [True, False])
def test_a_succeeded_pod_still_counts_if_somebody_cleaned_it_up(by_the_test: bool) -> None:
    seen = _Seen()
    seen.pod("Succeeded")
    if by_the_test:
        seen.recount.will_delete("lc-worker-0")
    seen.pod("Succeeded", deleted=True)
    seen.status(succeeded=1)
    shown, counted = seen.recount.now()
    assert (shown == counted) is by_the_test
