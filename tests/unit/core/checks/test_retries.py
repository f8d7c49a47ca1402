"""Users' case P57: that no retries are none is what most expect."""

from typing import Any

import pytest

from vcjob.api.defaults import apply_defaults
from vcjob.core.check import check

RESTARTS = [{"event": "PodFailed", "action": "RestartPod"}]


@pytest.mark.parametrize(
    ("most", "of_job", "of_task", "warns"),
    [
        (0, RESTARTS, [], True),
        (0, [], RESTARTS, True),
        (0, [{"event": "PodFailed", "action": "AbortJob"}], [], False),
        (1, RESTARTS, [], False),
        (None, RESTARTS, [], False),
    ],
)
def test_that_0_retries_are_3_is_said_where_something_restarts(
    most: Any, of_job: Any, of_task: Any, warns: bool
) -> None:
    container = {"name": "main", "image": "none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "w", "template": template, "policies": of_task}
    spec: dict[str, Any] = {"tasks": [task], "policies": of_job}
    if most is not None:
        spec["maxRetry"] = most
    api = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    job = {**api, "metadata": {"name": "j"}, "spec": spec}
    told = [(one.path, one.warning, "counts as 3" in one.message) for one in check(job)]
    assert told == ([(("spec", "maxRetry"), True, True)] if warns else [])
    assert check(apply_defaults(job)) == []
