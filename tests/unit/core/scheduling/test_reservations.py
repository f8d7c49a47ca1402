"""What gangs hold room for: their minimum until it starts, then what was let go or vacated."""

import pytest

from vcjob.api.names import GROUP_NAME, TASK_SPEC
from vcjob.api.types import Object
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.job_pods import JobPods
from vcjob.core.scheduling.ledger import Ledger
from vcjob.core.scheduling.overlooked import Overlooked
from vcjob.core.scheduling.reservations import Reservations

GATE = "ours"
KEY = ("x", "lc")
BOUND, FREE, HELD, ENDED, LEAVING = "bound", "free", "held", "ended", "leaving"


def pod(name: str, how: str, version: int = 1) -> Object:
    metadata: Object = {
        "name": name, "namespace": "x", "uid": f"{name}-{version // 100}",
        "resourceVersion": str(version), "annotations": {GROUP_NAME: "lc", TASK_SPEC: "worker"},
    }  # fmt: skip
    spec: Object = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    if how in (BOUND, ENDED, LEAVING):
        spec["nodeName"] = "n"
    if how == HELD:
        spec["schedulingGates"] = [{"name": GATE}]
    if how == LEAVING:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": spec,
            "status": {"phase": "Failed" if how == ENDED else "Pending"}}  # fmt: skip


def ledger(*hows: str, phase: str = "Inqueue", least: int = 3) -> Ledger:
    books = Ledger(GATE)
    metadata = {"name": "lc", "namespace": "x", "uid": "g", "resourceVersion": "1"}
    spec = {"minMember": least, "minTaskMember": {"worker": least},
            "minResources": {"cpu": str(least)}}  # fmt: skip
    books.enter_group({"metadata": metadata, "spec": spec, "status": {"phase": phase}})
    for number, how in enumerate(hows):
        books.enter_pod(pod(f"p{number}", how))
    return books


def reservations(overlooked: Overlooked | None = None) -> Reservations:
    return Reservations(JobPods(), {}, overlooked or Overlooked(60.0))


def held(gang: BookedGang, overlooked: Overlooked | None = None) -> int:
    return reservations(overlooked).held(gang).total()


@pytest.mark.parametrize(
    ("books", "count"),
    [
        (ledger(), 3),
        (ledger(HELD, HELD, HELD, HELD), 3),
        (ledger(FREE, FREE, FREE), 3),
        (ledger(BOUND, FREE, HELD), 2),
        (ledger(BOUND, ENDED, HELD), 1),
        (ledger(BOUND, BOUND, BOUND, HELD), 0),
        (ledger(BOUND, BOUND, BOUND, FREE), 1),
        (ledger(BOUND, BOUND, LEAVING), 0),
        (ledger(phase="Pending"), 0),
        (ledger(FREE, phase="Pending"), 1),
        (ledger(phase="Running"), 0),
        (ledger(BOUND, HELD, HELD, phase="Running"), 0),
    ],
)
def test_pods_that_room_is_held_for(books: Ledger, count: int) -> None:
    assert held(books.gangs[KEY]) == count


def test_the_place_of_a_pod_that_took_room_until_it_was_deleted_is_held() -> None:
    books = ledger(BOUND, BOUND, BOUND, phase="Running")
    gang = books.gangs[KEY]
    books.enter_pod(pod("p1", LEAVING, 2))
    assert held(gang) == 0, "it still takes its place itself"
    books.enter_pod(pod("p1", LEAVING, 3), gone=True)
    assert held(gang) == 1
    books.enter_pod(pod("p1", HELD, 100))
    assert held(gang) == 1, "until the one that is made in its stead is let go"
    books.enter_pod(pod("p1", FREE, 101))
    assert held(gang) == 1, "now by the pod itself"
    assert not gang.vacated


def test_no_place_is_held_for_pods_beyond_the_minimum_nor_for_those_that_had_ended() -> None:
    books = ledger(BOUND, BOUND, BOUND, BOUND, ENDED, phase="Running", least=4)
    gang = books.gangs[KEY]
    books.enter_pod(pod("p4", ENDED, 2), gone=True)
    assert held(gang) == 0
    for name in ("p2", "p3"):
        books.enter_pod(pod(name, BOUND, 2), gone=True)
    assert held(gang) == 2
    books.enter_pod(pod("p5", BOUND, 2))
    assert held(gang) == 1


def test_a_new_pod_group_holds_no_places_of_the_old_one() -> None:
    books = ledger(BOUND, BOUND, BOUND, phase="Running")
    books.enter_pod(pod("p1", BOUND, 2), gone=True)
    old = books.gangs[KEY].group
    assert old is not None
    new = {**old, "metadata": {**old["metadata"], "uid": "h", "resourceVersion": "9"}}
    books.enter_group(new)
    assert held(books.gangs[KEY]) == 0


def test_nothing_is_held_for_what_was_overlooked_once_the_gang_has_started() -> None:
    overlooked = Overlooked(0.0)
    overlooked.look({("g", "worker"): True}, 0.0)
    assert held(ledger(BOUND, BOUND, BOUND, FREE).gangs[KEY], overlooked) == 0
    assert held(ledger(BOUND, BOUND, FREE).gangs[KEY], overlooked) == 1


@pytest.mark.parametrize(
    ("books", "cpus"),
    [
        (ledger(), 3),
        (ledger(HELD, HELD, HELD, HELD), 3),
        (ledger(BOUND, FREE, HELD), 3),
        (ledger(BOUND, BOUND, BOUND, FREE, HELD), 4),
        (ledger(BOUND, BOUND, ENDED, phase="Running"), 2),
        (ledger(LEAVING, LEAVING, phase="Pending"), 2),
    ],
)
def test_what_a_gang_takes_of_its_queue(books: Ledger, cpus: int) -> None:
    assert reservations().amounts(books.gangs[KEY]) == {"cpu": cpus}
