"""What counts of a gang and of its pods."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from vcjob.api.types import Object
from vcjob.core.scheduling.booked import BookedGang, BookedPod, Vacancy


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
    [
        ("Pending", {"cpu": 2}),
        (None, {"cpu": 2}),
        ("Inqueue", {"cpu": 2, "memory": 5}),
        ("Running", {"cpu": 2}),
    ],
)
def test_a_gang_holds_its_minimum_from_admission_to_start_then_what_is_bound(
    phase: str | None, holds: dict[str, int]
) -> None:
    gang = BookedGang(group(phase), minimum={"cpu": Fraction(1), "memory": Fraction(5)})
    gang.bound = {"cpu": Fraction(2)}
    assert gang.holds() == holds


def test_a_gang_that_runs_holds_places_of_deleted_pods_until_its_minimum_is_full() -> None:
    gang = BookedGang(group("Running", minMember=3))
    gang.standing, gang.bound = Counter({"ps": 1}), {"cpu": Fraction(1)}
    gang.vacated = {f"w-{n}": Vacancy("worker", {"cpu": Fraction(2)}) for n in range(3)}
    assert gang.holds() == {"cpu": 5}
    gang.leaving["worker"] = 1
    assert gang.holds() == {"cpu": 3}, "one that leaves still takes its place itself"


@pytest.mark.parametrize(
    ("least", "of_task", "standing", "provided_for"),
    [
        (3, {"ps": 1, "worker": 2}, {}, {"p0", "w0", "w1"}),
        (3, {"ps": 1, "worker": 2}, {"worker": 3}, {"p0"}),
        (2, {"ps": 1, "worker": 2}, {}, {"w0", "w1"}),
        (0, {}, {}, set()),
    ],
    ids=["all", "beyond it some stand", "any will do", "none needed"],
)
def test_which_pods_of_an_admitted_gang_have_their_room(
    least: int, of_task: dict[str, int], standing: dict[str, int], provided_for: set[str]
) -> None:
    gang = BookedGang(group("Inqueue", minMember=least, minTaskMember=of_task))
    gang.standing = Counter(standing)
    for name in ("w0", "w1", "w2", "p0"):
        gang.unbound[name] = replace(pod(), task="ps" if name == "p0" else "worker")
    assert gang.provided_for() == provided_for


def test_pods_without_a_group_wait_for_nothing_and_ask_for_nothing() -> None:
    gang = BookedGang()
    assert not gang.waits
    assert (gang.uid, gang.name, gang.phase, gang.least, gang.queue) == ("", "", "", 0, "default")
