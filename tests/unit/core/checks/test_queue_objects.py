"""What must hold for Queues."""

import pytest

from vcjob.api.kinds import QUEUE
from vcjob.api.problems import errors, format_path
from vcjob.api.types import Object
from vcjob.core.checks.queue_objects import check_queue, queue_removal_problems

QUEUES = {
    "root": {},
    "default": {"spec": {"parent": "root"}},
    "busy": {"status": {"allocated": {"pods": "3"}}},
    "upper": {"spec": {"parent": "root"}},
    "lower": {"spec": {"parent": "upper"}},
}


def queue(name: str = "new", **spec: object) -> Object:
    return {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name},
            "spec": spec}  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"parent": "root"},
        {"parent": "upper"},
        {"guarantee": {"resource": {"cpu": "1"}}, "deserved": {"cpu": "1000m"}},
        {"guarantee": {"resource": {"cpu": 4}}, "capability": {"memory": "1Gi"}},
    ],
)
def test_a_queue_that_fits_has_no_problem(spec: Object) -> None:
    assert check_queue(queue(**spec), QUEUES) == []


@pytest.mark.parametrize(
    ("changed", "path", "said"),
    [
        (queue(parent="new"), "spec.parent", "a queue cannot be its own parent"),
        (queue(parent="lowr"), "spec.parent", 'there is no queue "lowr"'),
        (queue(parent="busy"), "spec.parent", "has pods of its own"),
        (queue("upper", parent="lower"), "spec.parent", "is below this one already"),
        (queue(weight=0), "spec.weight", "at least 1"),
        (queue(capability={"cpu": "-1"}), "spec.capability.cpu", ""),
        (
            queue(guarantee={"resource": {"cpu": 2}}, deserved={"cpu": "1500m"}),
            "spec.guarantee.resource.cpu",
            "2 cpu is more than the 1500m of spec.deserved",
        ),
        (
            queue(deserved={"memory": "2Gi"}, capability={"memory": "1G"}),
            "spec.deserved.memory",
            "more than the 1G of spec.capability",
        ),
    ],
)
def test_a_queue_that_does_not_fit_is_refused_with_the_reason(
    changed: Object, path: str, said: str
) -> None:
    (problem,) = check_queue(changed, QUEUES)
    assert format_path(problem.path) == path
    assert said in problem.message
    assert not problem.warning


def test_a_field_of_another_version_draws_a_warning() -> None:
    (problem,) = check_queue(queue(parnt="upper"), QUEUES)
    assert problem.warning
    assert "parent" in problem.hint


def test_a_parent_that_stays_is_not_asked_about_again() -> None:
    orphan = queue(parent="gone")
    assert check_queue(orphan, QUEUES, orphan) == []
    assert check_queue(orphan, QUEUES, queue(parent="upper")) != []


def test_what_is_not_known_refuses_nothing() -> None:
    assert check_queue(queue(parent="any"), None) == []
    assert queue_removal_problems("upper", None) == []


@pytest.mark.parametrize("name", ["default", "root", "upper"])
def test_queues_that_others_need_cannot_be_deleted(name: str) -> None:
    (problem,) = queue_removal_problems(name, QUEUES)
    assert name in problem.message


@pytest.mark.parametrize("name", ["lower", "unknown"])
def test_other_queues_can_be_deleted(name: str) -> None:
    assert queue_removal_problems(name, QUEUES) == []


def test_a_queue_with_pods_can_be_deleted_but_what_follows_is_told() -> None:
    (problem,) = queue_removal_problems("busy", QUEUES)
    assert problem.warning
    assert "3 pods" in problem.message


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        (None, "Open", True),
        (None, "Closed", True),
        (None, "Closing", False),
        ("Closing", "Closing", True),
        ("Open", "Closing", False),
        ("Closing", "Open", True),
    ],
)
def test_a_queue_can_be_made_open_or_closed_only(
    before: str | None, after: str, allowed: bool
) -> None:
    old = None if before is None else {**queue(), "status": {"state": before}}
    problems = check_queue({**queue(), "status": {"state": after}}, QUEUES, old)
    assert [format_path(one.path) for one in problems] == ([] if allowed else ["status.state"])


def test_a_place_in_the_tree_is_asked_about_again_only_when_it_changes() -> None:
    queues = {**QUEUES, "upper": {"spec": {"capability": {"cpu": 2}}}}
    large = queue("lower", parent="upper", capability={"cpu": "3"})
    heavier = queue("lower", parent="upper", capability={"cpu": "3"}, weight=2)
    assert check_queue(large, queues) != []
    assert check_queue(heavier, queues, large) == []


WRONG = (
    queue(guarantee={"resource": {"cpu": 2}}, deserved={"cpu": 1}),
    queue(weight=0, capability={"cpu": "-1"}),
    {**queue(), "metadata": {"name": "new", "annotations": {"volcano.sh/hierarchy": "a/b"}}},
    queue("upper", capability={"cpu": 1}),
)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_wrong_already_refuses_no_change_of_something_else(wrong: Object) -> None:
    queues = {**QUEUES, "lower": queue("lower", parent="upper", capability={"cpu": 2})}
    assert errors(check_queue(wrong, queues))
    marked = {"annotations": {**wrong["metadata"].get("annotations", {}), "a": "b"}}
    spec = {**wrong["spec"], "reclaimable": False}
    better = {**wrong, "metadata": {**wrong["metadata"], **marked}, "spec": spec}
    assert check_queue(better, queues, wrong) == []
    parts = (("deserved", 2), ("capability", 1))
    more = {part: {**spec.get(part, {}), "gpu": amount} for part, amount in parts}
    (problem,) = check_queue({**better, "spec": {**spec, **more}}, queues, wrong)
    assert problem.path == ("spec", "deserved", "gpu")


@pytest.mark.parametrize(
    "junk",
    [None, [], "text", {"spec": []}, {"spec": {"parent": 7, "guarantee": [1]}}, {"spec": {}}],
)
def test_whatever_stands_in_place_of_a_queue_is_answered(junk: object) -> None:
    assert isinstance(check_queue(junk, QUEUES), list)  # type: ignore[arg-type]
