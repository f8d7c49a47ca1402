"""A Queue's place among the others: amounts up and down, and Volcano's older annotations."""

import pytest

from vcjob.api.names import HIERARCHY, HIERARCHY_WEIGHTS
from vcjob.api.problems import format_path
from vcjob.api.types import Object
from vcjob.core.checks.queue_tree import check_hierarchy, check_parent, check_tree_amounts

QUEUES: dict[str, Object] = {
    "root": {"spec": {"capability": {"cpu": 1}}},
    "team": {"spec": {"parent": "root", "capability": {"cpu": "8"}, "deserved": {"cpu": "4"}}},
    "a": {"spec": {"parent": "team", "deserved": {"cpu": "1"}, "capability": {"cpu": "6"},
                   "guarantee": {"resource": {"cpu": 5}}}},
    "b": {"spec": {"parent": "team", "deserved": {"cpu": "1500m"}}},
    "odd": {"spec": {"parent": "team", "deserved": {"cpu": "many"}}},
}  # fmt: skip


def queue(name: str = "new", **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    "one",
    [
        queue(),
        queue(parent="root", capability={"cpu": 100}),
        queue(parent="team", capability={"cpu": "8", "memory": "1Ti"}),
        queue(parent="team", deserved={"cpu": "1500m"}),
        queue(parent="team", guarantee={"resource": {"cpu": 3}}),
        queue("a", parent="team", deserved={"cpu": "2500m"}),
        queue("team", capability={"memory": "1Gi"}),
        queue("team", capability={"cpu": 6}),
        queue("root", capability={"cpu": 1}),
        queue(parent="nowhere", capability={"cpu": 9}),
    ],
)
def test_amounts_that_fit_the_tree(one: Object) -> None:
    assert list(check_tree_amounts(one, QUEUES)) == []


@pytest.mark.parametrize(
    ("one", "path", "said"),
    [
        (
            queue(parent="team", capability={"cpu": "9"}),
            "spec.capability.cpu",
            'cpu 9, more than the cpu 8 of queue "team"',
        ),
        (
            queue(parent="team", deserved={"cpu": 2}),
            "spec.deserved",
            'the queues below queue "team" have cpu 4500m in spec.deserved together, more than its '
            "cpu 4 of spec.deserved",
        ),
        (
            queue(parent="team", guarantee={"resource": {"cpu": "3500m"}}),
            "spec.guarantee.resource",
            "have cpu 8500m in spec.guarantee.resource together, more than its cpu 8 of "
            "spec.capability",
        ),
        (
            queue("team", capability={"cpu": "5"}),
            "spec.capability.cpu",
            'queue "a" below it may have cpu 6, more than the cpu 5 of this queue',
        ),
        (
            queue("team", deserved={"cpu": 2}),
            "spec.deserved",
            "the queues below this queue have cpu 2500m",
        ),
    ],
)
def test_amounts_that_do_not_fit_the_tree(one: Object, path: str, said: str) -> None:
    (problem,) = check_tree_amounts(one, QUEUES)
    assert format_path(problem.path) == path
    assert said in problem.message


def test_a_parent_with_queues_below_it_takes_more_whatever_its_status_counts() -> None:
    queues: dict[str, Object] = {
        "leaf": {"status": {"allocated": {"pods": 2}}},
        "upper": {"status": {"allocated": {"pods": 2}}},
        "lower": {"spec": {"parent": "upper"}},
    }
    assert list(check_parent(queue(parent="upper"), queues)) == []
    assert len(list(check_parent(queue(parent="leaf"), queues))) == 1


def placed(path: str, weights: str, name: str = "new") -> Object:
    annotations = {HIERARCHY: path, HIERARCHY_WEIGHTS: weights}
    return {"metadata": {"name": name, "annotations": annotations}}


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (placed("root/ops", "1/2"), ""),
        (placed("root/dev/a", "1/0.5/3"), ""),
        (placed("root/sci/dev", "1/2/3", "sci-dev"), ""),
        ({"metadata": {"name": "new"}}, ""),
        (placed("root/sci", "1"), "has 2 steps"),
        (placed("root", ""), "no weight"),
        (placed("root/x", "1/many"), "'many' is no weight"),
        (placed("root/x", "1/0"), "'0' is no weight"),
        (placed("root/x", "1/nan"), "'nan' is no weight"),
        (placed("root/sc", "1/1"), ""),
        (placed("root", "1"), 'the queue "sci-dev" is below this one: root/sci/dev'),
    ],
)
def test_places_by_annotation(one: Object, said: str) -> None:
    known = {"sci-dev": placed("root/sci/dev", "1/2/3", "sci-dev")}
    problems = [problem.message for problem in check_hierarchy(one, known)]
    assert len(problems) == bool(said)
    assert all(said in problem for problem in problems)
