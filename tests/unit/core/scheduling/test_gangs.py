"""Admission of gangs: what must hold whatever gangs, queues and machine there are."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from vcjob.core.scheduling.amounts import Amounts
from vcjob.core.scheduling.gangs import QueueLimits, admissions, ancestry
from vcjob.core.scheduling.places import Gang, OneMachine, Wait, shortage

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
QUEUES = ("root", "default", "team", "night")

few = st.integers(0, 6).map(Fraction)
amounts = st.dictionaries(st.sampled_from(RESOURCES), few, max_size=3)
limits = st.builds(
    QueueLimits,
    name=st.just(""),
    parent=st.sampled_from(("", *QUEUES)),  # also in circles
    capability=amounts,
    priority=st.integers(0, 2),
    weight=st.integers(1, 3),
    is_open=st.booleans(),
    strict_order=st.booleans(),
)
gangs = st.lists(
    st.builds(
        Gang,
        uid=st.uuids().map(str),
        name=st.sampled_from("abc"),
        queue=st.sampled_from((*QUEUES, "none")),
        needs=amounts,
        priority=st.integers(0, 2),
        created=st.integers(0, 3).map(float),
    ),
    max_size=8,
    unique_by=lambda gang: gang.uid,
)
queues = st.dictionaries(st.sampled_from(QUEUES), limits)
held = st.dictionaries(st.sampled_from(QUEUES), amounts)


def answered(
    waiting: Iterable[Gang],
    limited: dict[str, QueueLimits],
    capacity: Amounts,
    used: Mapping[str, Amounts],
) -> list[tuple[Gang, Wait | None]]:
    return list(admissions(waiting, limited, OneMachine(capacity, used.values()), used))


def total(parts: list[Amounts]) -> dict[str, Fraction]:
    return {name: sum((part.get(name, Fraction(0)) for part in parts), Fraction(0))
            for name in RESOURCES}  # fmt: skip


@given(gangs, queues, amounts, held)
def test_every_gang_is_answered_once_and_what_is_admitted_fits_together(
    waiting: list[Gang],
    limited: dict[str, QueueLimits],
    capacity: dict[str, Fraction],
    used: dict[str, dict[str, Fraction]],
) -> None:
    answers = answered(waiting, limited, capacity, used)
    assert sorted(gang.uid for gang, _ in answers) == sorted(gang.uid for gang in waiting)
    admitted = [gang for gang, wait in answers if wait is None]
    for name, amount in total([gang.needs for gang in admitted]).items():
        before = total(list(used.values()))[name]
        assert amount == 0 or before + amount <= capacity.get(name, Fraction(0))
    for gang in admitted:
        assert gang.queue in limited
        for queue in ancestry(gang.queue, limited):
            assert limited[queue].is_open
            inside = [one.needs for one in admitted if queue in ancestry(one.queue, limited)]
            before = [amount for one, amount in used.items() if queue in ancestry(one, limited)]
            for name, most in limited[queue].capability.items():
                assert gang.needs.get(name, 0) == 0 or total([*inside, *before])[name] <= most


@given(gangs, queues, amounts, held)
def test_a_gang_that_waits_is_told_why_and_one_that_never_fits_so(
    waiting: list[Gang],
    limited: dict[str, QueueLimits],
    capacity: dict[str, Fraction],
    used: dict[str, dict[str, Fraction]],
) -> None:
    for gang, wait in answered(waiting, limited, capacity, used):
        if wait is None:
            continue
        assert wait.message
        if wait.reason == "ExceedsMachine":
            assert any(amount > capacity.get(name, 0) for name, amount in gang.needs.items())
        if wait.reason == "NotEnoughResources":
            alone = answered([gang], limited, capacity, {})
            assert alone == [(gang, None)]


@given(gangs, queues, amounts, held)
def test_the_order_in_which_gangs_are_named_does_not_matter(
    waiting: list[Gang],
    limited: dict[str, QueueLimits],
    capacity: dict[str, Fraction],
    used: dict[str, dict[str, Fraction]],
) -> None:
    distinct = list({(gang.queue, gang.priority, gang.created, gang.name): gang
                     for gang in waiting}.values())  # fmt: skip
    there = answered(distinct, limited, capacity, used)
    back = answered(reversed(distinct), limited, capacity, used)
    assert there == back


def test_of_queues_of_equal_priority_the_one_that_holds_least_for_its_weight_is_next() -> None:
    limited = {name: QueueLimits(name, weight=weight) for name, weight in (("a", 1), ("b", 3))}
    waiting = [Gang(f"{queue}{number}", f"{queue}{number}", queue, {"cpu": Fraction(1)},
                    created=float(number))
               for queue in "ab" for number in range(4)]  # fmt: skip
    answers = answered(waiting, limited, {"cpu": Fraction(4)}, {})
    admitted = [gang.uid for gang, wait in answers if wait is None]
    assert admitted == ["a0", "b0", "b1", "b2"]


def test_a_queue_of_higher_priority_goes_first() -> None:
    limited = {"a": QueueLimits("a"), "z": QueueLimits("z", priority=1)}
    waiting = [Gang(name, name, name, {"cpu": Fraction(1)}) for name in "az"]
    answers = answered(waiting, limited, {"cpu": Fraction(1)}, {})
    assert [gang.uid for gang, wait in answers if wait is None] == ["z"]


def test_a_single_pod_is_told_what_the_machine_lacks() -> None:
    capacity = {"memory": Fraction(4 * 1024**3)}
    needs = {"memory": Fraction(3 * 1024**3)}
    assert shortage(needs, capacity, {}) == ""
    assert shortage(needs, capacity, needs) == (
        "it needs memory 3Gi; this machine has memory 1Gi left"
    )
    assert shortage({"cpu": Fraction(1, 2)}, capacity, {}) == (
        "it needs cpu 500m; this machine has cpu 0"
    )
