import copy
from typing import Any

import pytest

from vcjob.api.defaults import (
    Operation,
    apply_defaults,
    default_operations,
    queue_default_operations,
)


def operations(spec: Any, **options: Any) -> list[tuple[str, str, Any]]:
    found = default_operations({"spec": spec}, **options)
    return [(operation.op, operation.path, operation.value) for operation in found]


FULL = {"queue": "q", "schedulerName": "s", "maxRetry": 1}


def test_the_rules_in_order() -> None:
    spec = {"tasks": [{"replicas": 2}], "plugins": {"lock": []}}
    requires = {"lock": ("svc", "key"), "key": ("lock", "forge"), "forge": (), "svc": ()}
    assert operations(spec, requires=requires.__getitem__) == [
        ("add", "/spec/queue", "default"),
        ("add", "/spec/schedulerName", "volcano"),
        ("add", "/spec/maxRetry", 3),
        ("add", "/spec/tasks/0/name", "default0"),
        ("add", "/spec/tasks/0/minAvailable", 2),
        ("add", "/spec/tasks/0/maxRetry", 3),
        ("add", "/spec/minAvailable", 2),
        ("add", "/spec/plugins/svc", []),
        ("add", "/spec/plugins/key", []),
        ("add", "/spec/plugins/forge", []),
    ]


def test_what_go_reads_as_not_given_is_replaced() -> None:
    spec = {"queue": "", "schedulerName": None, "maxRetry": 0, "minAvailable": 0, "tasks": []}
    assert operations(spec, scheduler="mine") == [
        ("replace", "/spec/queue", "default"),
        ("replace", "/spec/schedulerName", "mine"),
        ("replace", "/spec/maxRetry", 3),
    ]


def test_what_is_empty_in_the_way_of_another_type_is_left_to_be_refused() -> None:
    spec = {**FULL, "minAvailable": 1, "queue": 0, "schedulerName": False, "maxRetry": ""}
    assert operations(spec) == []


@pytest.mark.parametrize(
    ("task", "minimum"),
    [
        ({"replicas": 4}, 4),
        ({}, 0),
        ({"replicas": 4, "minAvailable": 0}, 0),
        ({"replicas": 4, "partitionPolicy": {"minPartitions": 1, "partitionSize": 2}}, 2),
        ({"replicas": 4, "partitionPolicy": {"partitionSize": 2}}, 4),
    ],
)
def test_the_minimum_of_a_task(task: dict[str, Any], minimum: int) -> None:
    defaulted = apply_defaults({"spec": {"tasks": [task]}})
    assert defaulted["spec"]["tasks"][0]["minAvailable"] == minimum
    assert defaulted["spec"]["minAvailable"] == minimum


def test_host_network_resolves_names_of_the_cluster() -> None:
    pod = {"hostNetwork": True, "noSuchField": 1}
    task = {"name": "a", "minAvailable": 1, "maxRetry": 1, "template": {"spec": pod}}
    spec = {**FULL, "minAvailable": 1, "tasks": [task]}
    path = "/spec/tasks/0/template/spec/dnsPolicy"
    assert operations(spec) == [("add", path, "ClusterFirstWithHostNet")]
    assert operations({**spec, "tasks": [{**task, "template": {"spec": {}}}]}) == []


def test_a_plugin_that_is_needed_and_there_is_left_alone() -> None:
    def requires(name: str) -> list[str]:
        return ["svc"] if name in ("ray", "pytorch") else []

    spec = {**FULL, "minAvailable": 1, "plugins": {"ray": [], "pytorch": []}}
    assert operations(spec, requires=requires) == [("add", "/spec/plugins/svc", [])]
    plugins = {"ray": [], "svc": ["--x"]}
    assert operations({**spec, "plugins": plugins}, requires=requires) == []


def test_defaults_of_the_schema_fill_what_is_there() -> None:
    policy = {"totalPartitions": 1, "partitionSize": 1, "networkTopology": {}}
    spec = {**FULL, "minAvailable": 1, "networkTopology": {"highestTierAllowed": 1}}
    spec["tasks"] = [{"name": "a", "minAvailable": 1, "maxRetry": 1, "partitionPolicy": policy}]
    assert operations(spec) == [
        ("add", "/spec/tasks/0/partitionPolicy/minPartitions", 0),
        ("add", "/spec/tasks/0/partitionPolicy/networkTopology/mode", "hard"),
        ("add", "/spec/networkTopology/mode", "hard"),
    ]


@pytest.mark.parametrize("job", [{}, {"spec": None}, {"spec": []}, {"spec": "x"}])
def test_without_a_spec_there_is_nothing_to_fill_in(job: dict[str, Any]) -> None:
    assert default_operations(job) == []


def test_the_object_given_stays_as_it_is() -> None:
    job = {"spec": {"tasks": [{"replicas": 1}], "plugins": {"ray": []}}}
    before = copy.deepcopy(job)
    assert apply_defaults(job) != before
    assert default_operations(job)[0] == Operation("add", "/spec/queue", "default")
    assert job == before


@pytest.mark.parametrize(
    ("queue", "patch"),
    [
        ({}, [Operation("add", "/spec", {"weight": 1, "reclaimable": True})]),
        (
            {"spec": {"weight": 0}},
            [
                Operation("replace", "/spec/weight", 1),
                Operation("add", "/spec/reclaimable", True),
            ],
        ),
        ({"spec": {"weight": 3, "reclaimable": False}}, []),
        ({"spec": "junk"}, []),
    ],
)
def test_queues_get_a_weight_and_lend_what_they_do_not_use(
    queue: dict[str, Any], patch: list[Operation]
) -> None:
    before = copy.deepcopy(queue)
    assert queue_default_operations(queue) == patch
    assert queue == before
