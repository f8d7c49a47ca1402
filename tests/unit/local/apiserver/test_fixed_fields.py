"""What of an object stays, and what may change."""

from typing import Any

import pytest

from vcjob.api.kinds import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.problems import format_path
from vcjob.local.apiserver.fixed_fields import changed_fixed

CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "2Gi"}},
    "volumeMode": "Filesystem",
}
TOLERATION, OTHER = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}
C = {"name": "c", "image": "i"}


def sized(storage: Any) -> dict[str, Any]:
    return {**CLAIM, "resources": {"requests": {"storage": storage}}}


@pytest.mark.parametrize(
    ("kind", "old", "new", "fields"),
    [
        (POD, {"containers": [C]}, {"containers": [{**C, "image": "j"}]}, []),
        (POD, {"containers": [C]}, {"containers": [{**C, "command": ["x"]}]}, ["containers"]),
        (POD, {"containers": [C]}, {"containers": [C, C]}, ["containers"]),
        (POD, {}, {"restartPolicy": "Never"}, ["restartPolicy"]),
        (POD, {"terminationGracePeriodSeconds": 30}, {"terminationGracePeriodSeconds": 5},
         ["terminationGracePeriodSeconds"]),
        (POD, {}, {"nodeName": "n"}, []),
        (POD, {"nodeName": "n"}, {"nodeName": "m"}, ["nodeName"]),
        (POD, {"nodeName": "n"}, {}, ["nodeName"]),
        (POD, {"tolerations": [TOLERATION]}, {"tolerations": [OTHER, TOLERATION]}, []),
        (POD, {"tolerations": [TOLERATION]}, {"tolerations": [OTHER]}, ["tolerations"]),
        (POD, {"schedulingGates": [{"name": "a"}]}, {}, []),
        (POD, {}, {"schedulingGates": [{"name": "a"}]}, ["schedulingGates"]),
        (POD, {}, {"activeDeadlineSeconds": 9}, []),
        (POD, {"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 8}, []),
        (POD, {"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 10},
         ["activeDeadlineSeconds"]),
        (POD, {"activeDeadlineSeconds": 9}, {}, ["activeDeadlineSeconds"]),
        (POD, {"tolerations": [TOLERATION]}, {"tolerations": 5}, []),  # told by the field's check
        (PERSISTENT_VOLUME_CLAIM, CLAIM, sized("3Gi"), []),
        (PERSISTENT_VOLUME_CLAIM, CLAIM, {**CLAIM, "volumeName": "v"}, []),
        (PERSISTENT_VOLUME_CLAIM, CLAIM, sized("1Gi"), ["resources.requests.storage"]),
        (PERSISTENT_VOLUME_CLAIM, CLAIM, sized("x"), []),  # told by the field's check
        (PERSISTENT_VOLUME_CLAIM, CLAIM, {**CLAIM, "storageClassName": "s"}, ["storageClassName"]),
        (PERSISTENT_VOLUME_CLAIM, {**CLAIM, "volumeName": "v"}, CLAIM, ["volumeName"]),
        (SERVICE, {"type": "ClusterIP"}, {"type": "NodePort"}, []),
    ],
)  # fmt: skip
def test_specs(kind: Kind, old: dict[str, Any], new: dict[str, Any], fields: list[str]) -> None:
    problems = changed_fixed(kind, {"spec": old}, {"spec": new})

    assert [format_path(one.path) for one in problems] == [f"spec.{field}" for field in fields]


@pytest.mark.parametrize(
    ("kind", "old", "new", "fields"),
    [
        (SECRET, {"type": "Opaque"}, {"type": "x"}, ["type"]),
        (
            SECRET,
            {"data": {"a": "1"}, "immutable": True},
            {"data": {}, "immutable": True},
            ["data"],
        ),
        (CONFIG_MAP, {"immutable": True}, {}, ["immutable"]),
        (CONFIG_MAP, {"data": {"a": "1"}}, {"data": {}}, []),
        (PRIORITY_CLASS, {"value": 1}, {"value": 2}, ["value"]),
        (ENDPOINT_SLICE, {"addressType": "IPv4"}, {"addressType": "IPv6"}, ["addressType"]),
    ],
)
def test_other_fields(
    kind: Kind, old: dict[str, Any], new: dict[str, Any], fields: list[str]
) -> None:
    assert [format_path(one.path) for one in changed_fixed(kind, old, new)] == fields
