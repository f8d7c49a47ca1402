"""What is written to PodGroups: Volcano's phases, conditions and counts."""

import pytest

from vcjob.api.kinds import POD_GROUP
from vcjob.api.names import GROUP_NAME, TASK_SPEC
from vcjob.api.problems import errors
from vcjob.api.schema import objects
from vcjob.api.schema.fields import check_fields
from vcjob.api.types import Object
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.group_status import (
    admitted,
    pending,
    progress,
    told,
    was_taken_back,
)
from vcjob.core.scheduling.ledger import Ledger
from vcjob.core.scheduling.places import Wait

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("status", "phase", "type_"),
    [
        (admitted("lc", NOW), "Inqueue", "Scheduled"),
        (pending(Wait("NotEnoughResources", "why"), NOW), "Pending", "Unschedulable"),
    ],
)
def test_statuses_have_the_fields_that_volcanos_definition_knows(
    status: Object, phase: str, type_: str
) -> None:
    group = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": {"name": "lc"},
             "spec": {"minMember": 1}, "status": status}  # fmt: skip
    assert errors(check_fields(group, objects.POD_GROUP)) == []
    assert status["phase"] == phase
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"]) == (type_, "True")
    assert condition["lastTransitionTime"] == "2027-01-15T08:00:00Z"


def test_what_a_waiting_group_was_told_is_read_back() -> None:
    wait = Wait("NotEnoughResources", "why")
    assert told({"status": pending(wait, NOW)}) == ("NotEnoughResources", "why")
    for other in (None, {}, {"status": admitted("lc", NOW)}, {"status": {"phase": "Pending"}}):
        assert told(other) == ("", "")


def test_that_a_gang_was_taken_back_is_kept_until_it_has_started() -> None:
    books = gang("Inqueue", 1, "Running")
    group = books.group
    assert group is not None
    seen = []
    for write in (
        lambda: pending(Wait("TakenBack", "no nodes"), NOW, group),
        lambda: pending(Wait("NotEnoughResources", "why"), NOW + 1, group),
        lambda: admitted("lc", NOW + 2, group),
        lambda: progress(books),
    ):
        group["status"] = {**(group.get("status") or {}), **(write() or {})}
        reasons = [(one["reason"], one["status"]) for one in group["status"]["conditions"]]
        seen.append((was_taken_back(group), reasons))
    assert seen == [
        (True, [("TakenBack", "True")]),
        (True, [("TakenBack", "False"), ("NotEnoughResources", "True")]),
        (True, [("TakenBack", "False"), ("Fits", "True")]),
        (False, [("Fits", "True")]),
    ]
    assert not was_taken_back(None)


def gang(phase: str, least: int, *pods: str, **status: int) -> BookedGang:
    books = Ledger("ours")
    about: Object = {"namespace": "x", "uid": "g", "resourceVersion": "1"}
    spec = {"minMember": least}
    books.enter_group(
        {"metadata": {**about, "name": "lc"}, "spec": spec, "status": {"phase": phase, **status}}
    )
    for number, pod_phase in enumerate(pods):
        annotations = {GROUP_NAME: "lc", TASK_SPEC: "worker"}
        metadata = {**about, "name": f"p{number}", "uid": f"p{number}", "annotations": annotations}
        bound = {} if pod_phase == "Unbound" else {"nodeName": "n"}
        phase_now = "Pending" if pod_phase == "Unbound" else pod_phase
        books.enter_pod({"metadata": metadata, "spec": bound, "status": {"phase": phase_now}})
    return books.gangs["x", "lc"]


@pytest.mark.parametrize(
    ("one", "written"),
    [
        (gang("Pending", 1, "Running"), None),
        (gang("Inqueue", 2, "Unbound", "Pending"), None),
        (gang("Inqueue", 2, "Unbound", "Running"), ("Inqueue", 1, 0, 0)),
        (gang("Inqueue", 2, "Pending", "Pending"), ("Running", 0, 0, 0)),
        (gang("Inqueue", 0), None),
        (gang("Inqueue", 0, "Running"), ("Running", 1, 0, 0)),
        (gang("Running", 2, "Running", "Succeeded", running=1, succeeded=1), None),
        (gang("Running", 2, "Failed", running=1), ("Running", 0, 0, 1)),
    ],
)
def test_a_group_turns_running_when_its_minimum_has_started_and_counts(
    one: BookedGang, written: tuple[str, int, int, int] | None
) -> None:
    status = progress(one)
    if written is None:
        assert status is None
    else:
        assert status is not None
        assert (
            status["phase"],
            status["running"],
            status["succeeded"],
            status["failed"],
        ) == written
