"""What counts of a gang and of its pods."""

from collections import Counter
from fractions import Fraction

import pytest

from vcjob.api.types import Object
from vcjob.core.scheduling.booked import BookedGang, BookedPod


def pod(phase: str = "Pending", **how: bool) -> BookedPod:
    marks = {f"is_{mark}": how.get(mark, False) for mark in ("bound", "leaving", "gated", "held")}
    return BookedPod(("x", "p"), "u", 1, "worker", phase, requests={}, **marks)


@pytest.mark.parametrize(
    ("booked", "stands", "is_let_go"),
    [
        (pod(), False, True),
        (pod(held=True), False, False),
        (pod(gated=True), False, False),
        (pod(bound=True), True, False),
        (pod("Running", bound=True, leaving=True), False, False),
        (pod("Succeeded", bound=True), True, False),
        (pod("Failed"), True, False),
        (pod(leaving=True), False, False),
    ],
)
def test_a_pod_stands_may_be_bound_or_neither(
    booked: BookedPod, stands: bool, is_let_go: bool
) -> None:
    assert (booked.is_standing, booked.is_let_go) == (stands, is_let_go)


def group(phase: str | None, **spec: object) -> Object:
    return {"metadata": {"uid": "g", "name": "lc"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("least", "of_task", "there", "is_complete"),
    [
        (3, {"ps": 1, "worker": 2}, {"ps": 1, "worker": 2}, True),
        (3, {"ps": 1, "worker": 2}, {"worker": 3}, False),
        (2, {"ps": 1, "worker": 2}, {"worker": 2}, True),
        (3, {"worker": 2}, {"ps": 1, "worker": 1}, False),
        (0, {}, {}, True),
    ],
    ids=["all", "a task lacks", "any will do", "too few", "none needed"],
)
def test_when_the_minimum_is_there(
    least: int, of_task: dict[str, int], there: dict[str, int], is_complete: bool
) -> None:
    gang = BookedGang(group("Inqueue", minMember=least, minTaskMember=of_task))
    gang.of_task = Counter(there)
    assert gang.is_complete() is is_complete


@pytest.mark.parametrize(
    ("phase", "holds"),
    [("Pending", {}), (None, {}), ("Inqueue", {"cpu": 3, "memory": 5}), ("Running", {"cpu": 2})],
)
def test_a_gang_holds_its_minimum_from_admission_to_start_then_what_is_bound(
    phase: str | None, holds: dict[str, int]
) -> None:
    gang = BookedGang(group(phase), minimum={"cpu": Fraction(1), "memory": Fraction(5)})
    gang.requested, gang.bound = {"cpu": Fraction(3)}, {"cpu": Fraction(2)}
    assert gang.holds() == holds


def test_pods_without_a_group_wait_for_nothing_and_ask_for_nothing() -> None:
    gang = BookedGang()
    assert not gang.waits
    assert (gang.uid, gang.name, gang.phase, gang.least, gang.queue) == ("", "", "", 0, "default")
