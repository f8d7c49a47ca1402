"""Pods and groups have the priority of their class."""

import pytest

from vcjob.core.scheduling.priorities import priority_of, with_priority

URGENT = {"metadata": {"name": "urgent"}, "value": 7, "preemptionPolicy": "Never"}
USUAL = {"metadata": {"name": "usual"}, "value": 2, "globalDefault": True}
MORE_USUAL = {"metadata": {"name": "more-usual"}, "value": 3, "globalDefault": True}


@pytest.mark.parametrize(
    ("given", "classes", "name", "priority", "policy"),
    [
        ({"priorityClassName": "urgent"}, [USUAL, URGENT], "urgent", 7, "Never"),
        ({"priorityClassName": "urgent", "priority": 0}, [URGENT], "urgent", 7, "Never"),
        ({"priority": 0}, [MORE_USUAL, URGENT, USUAL], "usual", 2, "PreemptLowerPriority"),
        ({"priorityClassName": "system-node-critical"}, [USUAL], "system-node-critical",
         2_000_001_000, None),
        ({"priorityClassName": "none"}, [USUAL], "none", None, None),
    ],
)  # fmt: skip
def test_a_pod_gets_the_priority_of_its_class(given, classes, name, priority, policy):
    spec = with_priority({**given, "containers": []}, classes)

    assert spec["priorityClassName"] == name
    assert spec.get("priority") == priority
    assert spec.get("preemptionPolicy") == policy


def test_a_pod_without_a_class_stays_as_it_is():
    spec = {"containers": []}
    assert with_priority(spec, [URGENT]) is spec


def test_groups_have_the_value_of_their_class():
    classes = {"urgent": URGENT}
    assert priority_of("urgent", classes) == 7
    assert priority_of("system-cluster-critical", classes) == 2_000_000_000
    assert priority_of("none", classes) == priority_of(None, classes) == 0
