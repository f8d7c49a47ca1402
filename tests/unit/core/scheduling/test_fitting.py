"""Pods on the nodes of a cluster: what is found to fit fits, and what does not is told why."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.core.scheduling.fitting import Nodes
from vcjob.core.scheduling.gangs import QueueLimits, admissions
from vcjob.core.scheduling.nodes import NodeFacts, objection
from vcjob.core.scheduling.places import Gang
from vcjob.core.scheduling.shapes import BILLION, Demands, PodShape

RESOURCES = ("cpu", "memory", "example.com/gpu")
ZONES = ("a", "b")


def facts(name: str, zone: str = "a", **amounts: int) -> NodeFacts:
    allocatable = {resource.replace("_", "."): amount * BILLION
                   for resource, amount in {"pods": 110, **amounts}.items()}  # fmt: skip
    return NodeFacts(name, {"zone": zone}, allocatable)


def shape(zone: str = "", **amounts: int) -> PodShape:
    requests = {name: amount * BILLION for name, amount in {"pods": 1, **amounts}.items() if amount}
    demands = Demands((("zone", zone),)) if zone else Demands()
    return PodShape(tuple(sorted(requests.items())), demands)


def gang(*pods: tuple[PodShape, int], name: str = "lc") -> Gang:
    return Gang(name, name, "default", {}, pods=pods)


amounts = st.fixed_dictionaries({resource: st.integers(0, 4) for resource in RESOURCES})
shapes = st.builds(lambda zone, asked: shape(zone, **asked), st.sampled_from(("", *ZONES)), amounts)
clusters = st.lists(
    st.builds(
        lambda zone, has, pods, ready, cordoned: NodeFacts(
            "",
            {"zone": zone},
            {name: 3 * amount * BILLION for name, amount in has.items()} | {"pods": pods * BILLION},
            is_ready=ready,
            is_cordoned=cordoned,
        ),
        st.sampled_from(ZONES), amounts, st.integers(0, 6), st.sampled_from((True, True, False)),
        st.sampled_from((False, False, True)),
    ),
    max_size=5,
).map(lambda nodes: {f"node-{number}": node for number, node in enumerate(nodes)})  # fmt: skip
pods = st.dictionaries(shapes, st.integers(1, 7), max_size=3).map(lambda some: tuple(some.items()))


@given(clusters, st.lists(pods, max_size=4))
def test_what_is_placed_fits_and_is_no_more_than_asked(
    nodes: dict[str, NodeFacts], groups: list[tuple[tuple[PodShape, int], ...]]
) -> None:
    place = Nodes(nodes)
    taken: dict[str, Counter[str]] = {name: Counter() for name in nodes}
    for group in groups:
        placed = place.place(group)
        for kind, where in placed.items():
            assert sum(where.values()) <= dict(group)[kind]
            for name, count in where.items():
                assert not objection(nodes[name], kind.demands)
                taken[name].update({one: amount * count for one, amount in kind.requests})
    for name, amounts_taken in taken.items():
        for resource, amount in amounts_taken.items():
            assert amount <= nodes[name].allocatable.get(resource, 0)


@given(clusters, st.lists(pods, min_size=1, max_size=4))
def test_gangs_are_admitted_exactly_if_all_of_them_can_be_placed(
    nodes: dict[str, NodeFacts], groups: list[tuple[tuple[PodShape, int], ...]]
) -> None:
    place, other = Nodes(nodes), Nodes(nodes)
    queues = {"default": QueueLimits("default")}
    waiting = [Gang(str(number), f"gang-{number}", "default", {}, created=float(number), pods=group)
               for number, group in enumerate(groups)]  # fmt: skip
    for one, wait in admissions(waiting, queues, place, {}):
        if wait is None:
            placed = other.place(one.pods)
            assert Counter(
                {kind: sum(where.values()) for kind, where in placed.items()}
            ) == Counter(dict(one.pods))
        else:
            assert wait.reason in ("ExceedsCluster", "NotEnoughResources")
            alone = Nodes(nodes).obstacle(one)
            assert (alone is not None) == (wait.reason == "ExceedsCluster")


@given(clusters, shapes, st.integers(1, 30))
def test_of_one_shape_as_many_fit_as_possible(
    nodes: dict[str, NodeFacts], kind: PodShape, count: int
) -> None:
    most = sum(
        min(node.allocatable.get(name, 0) // amount for name, amount in kind.requests)
        for node in nodes.values()
        if not objection(node, kind.demands)
    )
    placed = Nodes(nodes).place([(kind, count)])
    assert sum(placed.get(kind, {}).values()) == min(most, count)


@given(clusters, pods)
def test_the_order_in_which_nodes_and_pods_are_named_does_not_matter(
    nodes: dict[str, NodeFacts], group: tuple[tuple[PodShape, int], ...]
) -> None:
    there = Nodes(nodes).place(group)
    back = Nodes(dict(reversed(nodes.items()))).place(tuple(reversed(group)))
    assert there == back


def test_the_fullest_node_that_fits_is_taken_so_that_large_holes_stay() -> None:
    nodes = {"large": facts("large", cpu=8), "small": facts("small", cpu=2)}
    assert Nodes(nodes).place([(shape(cpu=2), 1)]) == {shape(cpu=2): {"small": 1}}


def test_pods_that_few_nodes_take_are_placed_before_larger_ones() -> None:
    nodes = {"a": facts("a", "a", cpu=4), "b": facts("b", "b", cpu=4)}
    bound, free = shape("a", cpu=1), shape(cpu=4)
    place = Nodes(nodes)
    assert place.obstacle(gang((free, 1), (bound, 1))) is None
    assert place.place([(free, 1), (bound, 1)]) == {bound: {"a": 1}, free: {"b": 1}}


@pytest.mark.parametrize(
    ("nodes", "wanted", "sentence"),
    [
        ([facts("n", cpu=4)], gang((shape(cpu=2), 3)),
         "lc needs room for 3 pods that request cpu 2 each to start; the cluster has room for 2 of "
         "them now"),
        ([facts("n", cpu=1)], gang((shape(cpu=2, memory=1024), 1)),
         "lc needs room for a pod that requests cpu 2, memory 1Ki to start; the cluster has room "
         "for none now"),
        ([facts("n", cpu=9, pods=2)], gang((shape(), 3)),
         "lc needs room for 3 pods that request nothing to start; the cluster has room for 2 "
         "of them now"),
        ([facts("n", cpu=3), facts("m", "b", cpu=9), NodeFacts("o", is_ready=False)],
         gang((shape("a", cpu=2), 2)),
         "lc needs room for 2 pods that request cpu 2 each to start; the cluster has room for 1 of "
         "them now (nodes: 3, of which 1 not ready, 1 outside the node selector)"),
        ([facts("n", cpu=3)], gang((shape(cpu=2), 1), (shape(cpu=1), 2)),
         "lc needs room for 2 pods that request cpu 1 each to start; the cluster has room for 1 of "
         "them beside its other pods now"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_with_numbers(
    nodes: list[NodeFacts], wanted: Gang, sentence: str
) -> None:
    found = Nodes({node.name: node for node in nodes}).obstacle(wanted)
    assert found is not None
    assert found.message == sentence


def test_a_gang_of_thousands_over_a_thousand_nodes_is_decided_by_count() -> None:
    nodes = {
        f"node-{number}": facts(f"node-{number}", cpu=8 + number % 3) for number in range(1000)
    }
    place = Nodes(nodes, {name: dict(node.allocatable) for name, node in nodes.items()})
    wanted = gang((shape(cpu=1), 5000), (shape(cpu=4), 500))
    assert place.never(wanted) is None
    assert place.obstacle(wanted) is None
    place.take(wanted)
    left = Fraction(sum(8 + number % 3 for number in range(1000)) - 5000 - 2000)
    assert sum(place.place([(shape(cpu=1), 10_000)])[shape(cpu=1)].values()) == left


def test_what_others_hold_and_cordons_count_for_shares() -> None:
    nodes = {
        "n": facts("n", cpu=4),
        "m": NodeFacts("m", {}, {"cpu": 4 * BILLION}, is_cordoned=True),
    }
    assert Nodes(nodes).capacity == {"cpu": 4, "pods": 110}
