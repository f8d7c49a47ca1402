"""Decisions about gangs on a cluster, from what was entered in the books."""

from collections.abc import Callable
from typing import Any

import pytest

from vcjob.api.names import GROUP_NAME, TASK_SPEC
from vcjob.api.types import Job, Object
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.core.scheduling.gating import GATE

NOW = "2026-01-01T00:00:0{}Z"
Enter = Callable[[ClusterBooks], None]


class Made:
    """Books of a cluster with a node of so many cores, and a queue; ``enter`` makes versions."""

    def __init__(self, cpus: int = 4) -> None:
        self.books = ClusterBooks(60.0)
        self.version = 0
        self.books.enter_node(node(cpus))
        self.books.enter_queue(queue())

    def meta(self, name: str, **more: Any) -> Object:
        self.version += 1
        about = {"name": name, "namespace": "x", "uid": name, "resourceVersion": str(self.version)}
        return {**about, **more}

    def gang(
        self, name: str, *tasks: tuple[str, int, str], phase: str = "Pending", known: bool = True,
        age: int = 0, reason: str = "", **spec: Any,
    ) -> BookedGang:  # fmt: skip
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "uid": f"job-{name}"}
        least = {task: count for task, count, _ in tasks}
        metadata = self.meta(name, ownerReferences=[owner], creationTimestamp=NOW.format(age))
        status = {"phase": phase, "conditions": [{"reason": reason}]}
        spec = {"minMember": sum(least.values()), "minTaskMember": least, **spec}
        self.books.enter_group({"metadata": metadata, "spec": spec, "status": status})
        if known:
            self.books.enter_job(job(name, *tasks))
        return self.books.ledger.gangs["x", name]

    def pod(self, gang: str, name: str, cpu: str = "1", task: str = "w", **spec: Any) -> None:
        notes = {GROUP_NAME: gang, TASK_SPEC: task} if gang else {}
        gates = {} if spec else {"schedulingGates": [{"name": GATE}]}
        self.books.enter_pod(
            {"metadata": self.meta(name, annotations=notes), "spec": {**asks(cpu), **gates, **spec}}
        )

    def answers(self) -> dict[str, str]:
        return {gang.name: wait.reason if wait else "" for _, gang, wait
                in self.books.answers(lambda gang: None)}  # fmt: skip

    def let_go(self, gang: str) -> list[str]:
        booked = self.books.ledger.gangs["x", gang]
        return [pod.key[1] for pod in self.books.to_let_go(booked, self.books.leftover())]


def asks(cpu: str) -> Object:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}


def job(name: str, *tasks: tuple[str, int, str]) -> Job:
    made = [{"name": task, "replicas": count, "template": {"spec": asks(cpu)}}
            for task, count, cpu in tasks]  # fmt: skip
    metadata = {"name": name, "namespace": "x", "uid": f"job-{name}"}
    return Job.of({"metadata": metadata, "spec": {"tasks": made}})


def node(cpus: int, **more: Any) -> Object:
    ready = {"type": "Ready", "status": "True", **more}
    allocatable = {"cpu": str(cpus), "pods": "110"}
    return {"metadata": {"name": "n"}, "spec": {},
            "status": {"allocatable": allocatable, "conditions": [ready]}}  # fmt: skip


def queue(**more: Any) -> Object:
    return {"metadata": {"name": "default"}, "spec": {"weight": 1, **more}}


def test_a_gang_is_answered_when_its_job_is_known_and_nothing_of_an_earlier_attempt_is_left() -> (
    None
):
    made = Made()
    made.gang("fits", ("w", 2, "1"))
    made.gang("large", ("w", 9, "1"))
    made.gang("unknown", ("w", 1, "1"), known=False)
    made.gang("clearing", ("w", 1, "1"), reason="TakenBack")
    made.pod("clearing", "old", nodeName="n")
    assert made.answers() == {"fits": "", "large": "ExceedsCluster"}


def test_gangs_that_fit_in_one_order_only_are_not_admitted_together() -> None:
    made = Made(3)
    made.books.enter_node({**node(3), "metadata": {"name": "m"}})
    made.gang("ones", ("w", 2, "1"), age=0)
    made.gang("twos", ("w", 2, "2"), age=1)
    answers = made.answers()
    assert answers["ones"] == ""
    for name, why in answers.items():  # whoever was admitted is not taken back in the next pass
        phase = "Pending" if why else "Inqueue"
        made.gang(name, ("w", 2, "1" if name == "ones" else "2"), phase=phase)
    assert made.books.fitting_no_more() == []


@pytest.mark.parametrize(
    ("change", "grew"),
    [
        (lambda books: books.enter_node(node(4, lastHeartbeatTime="now")), False),
        (lambda books: books.enter_node(node(5)), True),
        (lambda books: books.enter_node(node(4), gone=True), True),
        (lambda books: books.enter_queue({**queue(), "status": {"running": 3}}), False),
        (lambda books: books.enter_queue(queue(capability={"cpu": "1"})), True),
        (lambda books: books.enter_queue(queue(), gone=True), True),
        (lambda books: books.enter_class({"metadata": {"name": "high"}, "value": 9}), True),
        (lambda books: books.enter_job(job("lc", ("w", 1, "1"))), False),
        (lambda books: books.enter_job(job("lc", ("w", 1, "500m"))), True),
    ],
)
def test_what_lets_waiting_gangs_be_tried_again(change: Enter, grew: bool) -> None:
    made = Made()
    made.gang("lc", ("w", 1, "1"))
    made.books.room_grew = False
    change(made.books)
    assert made.books.room_grew is grew


def test_a_minimum_is_let_go_when_it_is_all_there_large_pods_first_then_by_number() -> None:
    made = Made(20)
    made.gang("lc", ("ps", 1, "4"), ("w", 2, "1"), phase="Inqueue")
    made.pod("lc", "lc-w-10")
    made.pod("lc", "lc-w-9")
    assert made.let_go("lc") == []
    made.pod("lc", "lc-ps-0", "4", "ps")
    made.pod("lc", "lc-w-11")
    assert made.let_go("lc") == ["lc-ps-0", "lc-w-9", "lc-w-10"]
    made.gang("lc", ("ps", 1, "4"), ("w", 2, "1"))
    assert made.let_go("lc") == [], "not before it is admitted"


def test_beyond_a_minimum_pods_start_in_room_that_is_held_for_nobody() -> None:
    made = Made(4)
    made.gang("lc", ("w", 1, "1"), phase="Running")
    made.pod("lc", "lc-w-0", nodeName="n")
    for index in range(1, 4):
        made.pod("lc", f"lc-w-{index}")
    made.gang("other", ("w", 2, "1"), phase="Inqueue")
    assert made.let_go("lc") == ["lc-w-1"]


def test_urgent_gangs_come_first_then_old_ones() -> None:
    made = Made()
    made.books.enter_class({"metadata": {"name": "high"}, "value": 9})
    made.gang("young", ("w", 1, "1"), age=2)
    made.gang("old", ("w", 1, "1"), age=1)
    made.gang("high", ("w", 1, "1"), age=3, priorityClassName="high")
    keys = made.books.by_urgency(made.books.ledger.gangs)
    assert [name for _, name in keys] == ["high", "old", "young"]


@pytest.mark.parametrize("grown", [False, True])
def test_of_admitted_gangs_that_no_longer_fit_those_that_grew_lose_first(grown: bool) -> None:
    made = Made(3)
    made.gang("old", ("w", 2, "1"), phase="Inqueue", age=0)
    made.gang("young", ("w", 1, "1"), phase="Inqueue", age=1)
    if grown:
        made.gang("old", ("w", 3, "1"), phase="Inqueue", age=0)
    else:
        made.books.enter_node(node(2))
    [(key, wait)] = made.books.fitting_no_more()
    assert key == ("x", "old" if grown else "young")
    assert wait.reason == "NotEnoughResources"
