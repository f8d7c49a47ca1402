from typing import Any

from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import registry_of


def task(name: str, replicas: int, minimum: int | None = None, **more: Any) -> Object:
    cpu = more.pop("cpu", "1")
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **more.pop("pod", {})}
    least = {} if minimum is None else {"minAvailable": minimum}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **least, **more}


def group(*tasks: Object, waiting: tuple[str, ...] = (), **spec: Any) -> Object:
    priorities = {"high": 10, "low": 1}
    made = Job.of({"metadata": {"name": "j", "uid": "u"}, "spec": {"tasks": list(tasks), **spec}})
    wanted: Object = Blueprint(made, registry_of([])).pod_group(priorities, waiting)["spec"]
    return wanted


def test_a_smaller_gang_is_taken_from_the_most_urgent_tasks() -> None:
    urgent = {"priorityClassName": "high"}
    made = group(task("a", 3, 3, cpu="1"), task("b", 2, 2, cpu="10", pod=urgent), minAvailable=3)
    assert made["minResources"]["cpu"] == "21"
    assert made["minResources"]["pods"] == "3"


def test_a_bigger_gang_takes_each_minimum_first_and_then_what_is_left() -> None:
    made = group(task("a", 4, 1, cpu="1"), task("b", 4, 1, cpu="10"), minAvailable=4)
    assert made["minResources"]["cpu"] == "13"
    assert made["minMember"] == 4
    assert made["minTaskMember"] == {"a": 1, "b": 1}


def test_a_task_that_waits_for_another_does_not_count_until_its_turn() -> None:
    tasks = (task("a", 2, 2), task("b", 3, 3))
    assert group(*tasks, minAvailable=5)["minMember"] == 5
    waiting = group(*tasks, minAvailable=5, waiting=("b",))
    assert waiting["minMember"] == 2
    assert waiting["minTaskMember"] == {"a": 2}
    assert waiting["minResources"]["pods"] == "2"


def test_partitions_become_sub_groups() -> None:
    policy = {
        "totalPartitions": 4,
        "partitionSize": 2,
        "minPartitions": 3,
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    made = group(task("a", 8, partitionPolicy=policy))
    assert made["minTaskMember"] == {"a": 6}
    assert made["subGroupPolicy"] == [
        {
            "name": "a",
            "subGroupSize": 2,
            "minSubGroups": 3,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "a"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        }
    ]


def test_the_cost_does_not_grow_with_replicas() -> None:
    made = group(task("a", 2**31 - 1, cpu="500m"), minAvailable=2**31 - 1)
    assert made["minResources"]["cpu"] == "1073741823500m"
