import pytest

from vcjob.api.types import Object
from vcjob.core.usage import pod_usage


def container(kind: str = "requests", **amounts: str) -> Object:
    return {"resources": {kind: amounts}}


SIDECAR = {**container(cpu="250m"), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "usage"),
    [
        ({}, {}),
        (
            {"containers": [container(cpu="1"), container(cpu="500m")]},
            {"cpu": "1500m", "requests.cpu": "1500m"},
        ),
        # init containers run one after the other
        (
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="4")] * 2},
            {"cpu": "4", "requests.cpu": "4"},
        ),
        # a sidecar runs beside those that start after it, and beside the containers
        (
            {"containers": [container(cpu="1")], "initContainers": [SIDECAR]},
            {"cpu": "1250m", "requests.cpu": "1250m"},
        ),
        (
            {
                "containers": [container(cpu="1")],
                "initContainers": [SIDECAR, container(cpu="2"), SIDECAR],
            },
            {"cpu": "2250m", "requests.cpu": "2250m"},
        ),
        (
            {"containers": [container("limits", cpu="1")], "overhead": {"cpu": "1", "memory": "1"}},
            {
                "limits.cpu": "2",
                "cpu": "1",
                "requests.cpu": "1",
                "memory": "1",
                "requests.memory": "1",
            },
        ),
        (
            {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "3"}}},
            {"cpu": "3", "requests.cpu": "3"},
        ),
        (
            {"containers": [{"resources": {"requests": {"example.com/gpu": "2", "odd": "1"}}}]},
            {"example.com/gpu": "2", "requests.example.com/gpu": "2"},
        ),
        (
            {"containers": [{"resources": {"requests": {"hugepages-2Mi": "4Mi"}}}]},
            {"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"},
        ),
    ],
)
def test_a_pod_counts_as_in_a_quota(spec: Object, usage: dict[str, str]) -> None:
    counted = {name: str(amount) for name, amount in pod_usage(spec).items()}
    assert counted == {"pods": "1", "count/pods": "1", **usage}
