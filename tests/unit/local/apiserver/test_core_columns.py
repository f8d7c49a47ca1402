"""Columns say what kubectl users know from clusters."""

import pytest

from vcjob.api.kinds import EVENT, POD
from vcjob.local.apiserver.columns import path_column
from vcjob.local.apiserver.core_columns import COLUMNS, pod_status

SPEC = {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]}


def pod(status, **metadata):
    return {"metadata": {"name": "p", **metadata}, "spec": SPEC, "status": status}


def waiting(reason):
    return {"state": {"waiting": {"reason": reason}}}


def ended(**more):
    return {"state": {"terminated": more}}


STATUSES = [
    ({"phase": "Pending"}, "Pending"),
    ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ({"phase": "Pending", "containerStatuses": [waiting("ErrImagePull")]}, "ErrImagePull"),
    ({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}, "CrashLoopBackOff"),
    ({"phase": "Failed", "containerStatuses": [ended(reason="OOMKilled")]}, "OOMKilled"),
    ({"phase": "Failed", "containerStatuses": [ended(exitCode=3)]}, "ExitCode:3"),
    ({"phase": "Failed", "containerStatuses": [ended(signal=9, exitCode=137)]}, "Signal:9"),
    ({"phase": "Succeeded", "containerStatuses": [ended(reason="Completed")]}, "Completed"),
    (
        {
            "phase": "Running",
            "containerStatuses": [
                ended(reason="Completed"),
                {"ready": True, "state": {"running": {}}},
            ],
        },
        "Running",
    ),
    ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, "Init:0/2"),
    (
        {"phase": "Pending", "initContainerStatuses": [ended(exitCode=0), {"state": {}}]},
        "Init:1/2",
    ),
    (
        {"phase": "Failed", "initContainerStatuses": [ended(exitCode=1, reason="Error")]},
        "Init:Error",
    ),
]


@pytest.mark.parametrize(("status", "word"), STATUSES)
def test_the_status_of_a_pod_is_its_first_trouble(status, word):
    assert pod_status(pod(status)) == word


def test_a_pod_that_is_being_deleted_is_terminating():
    assert pod_status(pod({"phase": "Running"}, deletionTimestamp="x")) == "Terminating"


def test_restarts_tell_when_the_latest_was():
    last = {"terminated": {"finishedAt": "2027-01-15T07:59:00Z"}}
    status = {"containerStatuses": [{"restartCount": 2, "lastState": last}]}
    [column] = [one for one in COLUMNS[POD] if one.name == "Restarts"]

    assert column.show(pod(status), 1_800_000_000.0) == "2 (60s ago)"


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        (".spec.size", 3),
        (".spec.list[1]", "b"),
        (".spec.list[9]", None),
        (".spec['a.b']", 1),
        (r".spec.a\.b", 1),
        ('.status[?(@.type=="Ready")].status', "True"),
        (".spec.absent.more", None),
        ("{range .items}", None),
    ],
)
def test_a_custom_column_shows_what_is_at_its_path(path, cell):
    obj = {
        "spec": {"size": 3, "list": ["a", "b"], "a.b": 1},
        "status": [{"type": "Ready", "status": "True"}],
    }
    assert path_column("c", "string", path).show(obj, 0.0) == cell


def test_events_have_the_columns_of_kubectl():
    assert [one.name for one in COLUMNS[EVENT] if not one.wide] == [
        "Last Seen", "Type", "Reason", "Object", "Message",
    ]  # fmt: skip
