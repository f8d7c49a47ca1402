"""Pods for Kubernetes' own scheduler are gated; those of other schedulers are left alone."""

from copy import deepcopy

import pytest

from vcjob.core.scheduling.gating import GATE, GangScheduling, pod_adapter

OURS, OTHER = {"name": GATE}, {"name": "example.com/quota"}


@pytest.mark.parametrize(
    ("spec", "scheduler", "gates"),
    [
        ({"schedulerName": "volcano"}, "default-scheduler", [OURS]),
        ({}, "default-scheduler", [OURS]),
        ({"schedulerName": "", "schedulingGates": [OTHER]}, "default-scheduler", [OTHER, OURS]),
        ({"schedulingGates": [OURS]}, "default-scheduler", [OURS]),
        ({"schedulerName": "my-scheduler"}, "my-scheduler", None),
        ({"schedulerName": "default-scheduler"}, "default-scheduler", None),
        ({"schedulerName": "volcano", "nodeName": "node-1"}, "volcano", None),
    ],
)
def test_a_pod_for_the_builtin_way(spec, scheduler, gates):
    pod = {"metadata": {"name": "lc-worker-0"}, "spec": {"containers": [], **spec}}
    before = deepcopy(pod)
    made = pod_adapter(GangScheduling.BUILTIN)(pod)
    assert made["spec"].get("schedulerName") == scheduler
    assert made["spec"].get("schedulingGates") == gates
    assert made["metadata"] == pod["metadata"]
    assert pod == before


def test_for_volcanos_scheduler_nothing_changes():
    pod = {"spec": {"schedulerName": "volcano"}}
    assert pod_adapter(GangScheduling.VOLCANO)(pod) is pod
