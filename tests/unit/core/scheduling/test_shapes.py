"""What a pod asks of a node."""

import pytest

from vcjob.api.types import Object
from vcjob.core.scheduling.shapes import BILLION, pod_shape, resource_amounts

GI = 2**30 * BILLION


def container(**resources: Object) -> Object:
    return {"name": "main", "resources": resources}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        ({}, {}),
        ({"containers": [{"name": "main"}]}, {}),
        ({"containers": [container(requests={"cpu": "500m", "memory": "1Gi"}),
                         container(requests={"cpu": 1})]}, {"cpu": 1_500_000_000, "memory": GI}),
        ({"containers": [container(requests={"cpu": "0"})]}, {}),
        ({"containers": [container(limits={"cpu": "2", "example.com/gpu": "1"},
                                   requests={"cpu": "1"})]},
         {"cpu": BILLION, "example.com/gpu": BILLION}),
        ({"containers": [container(requests={"cpu": "1"})],
          "initContainers": [container(requests={"cpu": "3"})]}, {"cpu": 3 * BILLION}),
        ({"containers": [container(requests={"cpu": "1"})],
          "initContainers": [{**container(limits={"cpu": "3"}), "restartPolicy": "Always"}]},
         {"cpu": 4 * BILLION}),
        ({"containers": [container(requests={"cpu": "1"})], "overhead": {"cpu": "250m"}},
         {"cpu": 1_250_000_000}),
        ({"containers": [container(requests={"cpu": "1"})], "resources": {
            "requests": {"cpu": "2"}}}, {"cpu": 2 * BILLION}),
        ({"containers": [container(requests={"cpu": "much"})]}, {}),
        ({"containers": [container(requests={"hugepages-2Mi": "1Gi"})]}, {"hugepages-2Mi": GI}),
    ],
)  # fmt: skip
def test_requests_of_a_pod(spec: Object, requests: dict[str, int]) -> None:
    assert dict(pod_shape(spec).requests) == {"pods": BILLION, **requests}


def test_pods_that_can_take_each_others_places_have_one_shape() -> None:
    one = {"containers": [container(requests={"cpu": "1", "memory": "1Gi"})], "priority": 1}
    other = {"containers": [container(requests={"memory": "1024Mi", "cpu": "1000m"})]}
    assert pod_shape(one) == pod_shape(other)
    assert pod_shape({**one, "nodeSelector": {"zone": "a"}}) != pod_shape(one)


def test_amounts_that_are_none_count_for_nothing() -> None:
    assert resource_amounts({"cpu": "1", "memory": "1 GB"}) == {"cpu": BILLION}
    assert resource_amounts(None) == {}
