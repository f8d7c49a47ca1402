"""What pods get that nothing is held for."""

from fractions import Fraction

import pytest

from vcjob.core.scheduling.fitting import Nodes
from vcjob.core.scheduling.gangs import QueueLimits, QueueRoom
from vcjob.core.scheduling.leftover import Leftover
from vcjob.core.scheduling.nodes import NodeFacts
from vcjob.core.scheduling.shapes import BILLION, PODS, PodShape

CPU = PodShape((("cpu", BILLION), (PODS, BILLION)))


def leftover(cpus: int, capability: int | None = None, held: int = 0) -> Leftover:
    nodes = {"n": NodeFacts("n", allocatable={"cpu": cpus * BILLION, PODS: 99 * BILLION})}
    limits = {} if capability is None else {"cpu": Fraction(capability)}
    queues = {"root": QueueLimits("root", "", limits), "team": QueueLimits("team")}
    room = QueueRoom(queues, {"team": {"cpu": Fraction(held)}})
    return Leftover(lambda: Nodes(nodes), lambda: room)


@pytest.mark.parametrize(
    ("left", "queue", "fits"),
    [
        (leftover(3), "team", [2, 1]),
        (leftover(9), "team", [2, 2]),
        (leftover(9, 3), "team", [2, 1]),
        (leftover(9, 4, held=3), "team", [1, 0]),
        (leftover(9, 4, held=6), "team", [0, 0]),
        (leftover(9), "nowhere", [0, 0]),
    ],
)
def test_each_gets_what_nodes_and_queues_have_left_and_the_next_one_the_rest(
    left: Leftover, queue: str, fits: list[int]
) -> None:
    assert [left.take(queue, CPU, 2) for _ in fits] == fits


def test_nothing_is_reckoned_before_somebody_asks() -> None:
    def never() -> Nodes:
        raise AssertionError("asked")

    Leftover(never, lambda: QueueRoom({}, {})).take("nowhere", CPU, 1)
