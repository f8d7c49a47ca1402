"""What must hold for PodGroups that somebody makes."""

import pytest

from vcjob.api.kinds import JOB
from vcjob.api.problems import format_path
from vcjob.api.types import Object
from vcjob.core.checks.pod_groups import check_pod_group

QUEUES: dict[str, Object] = {"default": {}, "shut": {"status": {"state": "Closed"}},
                             "closing": {"status": {"state": "Closing"}}}  # fmt: skip
BOTH = {"highestTierAllowed": 1, "highestTierName": "rack"}


def group(of_job: bool = False, **spec: object) -> Object:
    owners = [{"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": "u"}]
    return {"metadata": {"name": "g", "ownerReferences": owners if of_job else []}, "spec": spec}


@pytest.mark.parametrize(
    ("one", "paths"),
    [
        (group(), []),
        (group(queue="default", networkTopology={"highestTierAllowed": 0}), []),
        (group(queue="defualt"), ["spec.queue"]),
        (group(queue="shut"), ["spec.queue"]),
        (group(queue="closing"), ["spec.queue"]),
        (group(of_job=True, queue="shut"), []),
        (group(networkTopology=BOTH), ["spec.networkTopology"]),
        (
            group(subGroupPolicy=[{}, {"networkTopology": BOTH}]),
            ["spec.subGroupPolicy[1].networkTopology"],
        ),
        (group(of_job=True, networkTopology=BOTH), ["spec.networkTopology"]),
        ({"spec": []}, []),
        ({"metadata": 3, "spec": {"queue": 5, "subGroupPolicy": {}, "networkTopology": []}}, []),
    ],
)
def test_queue_and_topology_of_a_pod_group(one: Object, paths: list[str]) -> None:
    assert [format_path(problem.path) for problem in check_pod_group(one, QUEUES)] == paths


def test_what_is_not_known_refuses_nothing() -> None:
    assert check_pod_group(group(queue="any"), None) == []


def test_a_queue_that_is_nearly_met_is_named() -> None:
    (problem,) = check_pod_group(group(queue="defualt"), QUEUES)
    assert problem.hint == 'did you mean "default"?'
