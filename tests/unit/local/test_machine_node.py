"""The Node that stands for this machine tells what is so, in the fields that clients read."""

import os
import platform

import pytest

from vcjob import __version__
from vcjob.api.kinds import NODE
from vcjob.api.schema.fields import check_fields
from vcjob.api.validation import FORMATS
from vcjob.local import machine_node as module
from vcjob.local.apiserver.core_columns import COLUMNS
from vcjob.local.apiserver.schemas.kinds import OF_KINDS
from vcjob.local.machine_node import machine_node

CAPACITY = {"cpu": "2", "memory": "4Gi"}


@pytest.fixture
def node():
    return machine_node("this-machine", CAPACITY, "10.0.0.1", 1_700_000_000.0)


def test_it_is_a_node_that_the_api_serves(node):
    assert check_fields(node, OF_KINDS[NODE]) == []
    assert all(not FORMATS["label-value"](value) for value in node["metadata"]["labels"].values())


def test_it_is_ready_and_under_no_pressure(node):
    found = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    assert found == {"Ready": "True"} | dict.fromkeys(
        ("MemoryPressure", "DiskPressure", "PIDPressure"), "False"
    )
    times = {one["lastTransitionTime"] for one in node["status"]["conditions"]}
    assert times == {"2023-11-14T22:13:20Z"}


def test_it_has_what_pods_can_have(node):
    assert node["status"]["capacity"] == {**CAPACITY, "pods": "10000"}
    assert node["status"]["allocatable"] == node["status"]["capacity"]


def test_it_tells_what_runs_on_the_machine(node):
    info = node["status"]["nodeInfo"]
    assert info["kernelVersion"] == os.uname().release
    assert info["containerRuntimeVersion"] == f"vcjob://{__version__}"
    assert info["kubeletVersion"].startswith("v1.")
    assert all(isinstance(value, str) for value in info.values())


def test_addresses_and_labels_name_it(node):
    addresses = {one["type"]: one["address"] for one in node["status"]["addresses"]}
    assert addresses == {"InternalIP": "10.0.0.1", "Hostname": platform.node()}
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "this-machine"


@pytest.mark.parametrize(
    ("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")]
)
def test_architectures_have_the_names_of_kubernetes(monkeypatch, machine, name):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    node = machine_node("n", CAPACITY, "10.0.0.1", 0.0)
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == name
    assert node["status"]["nodeInfo"]["architecture"] == name


def test_a_machine_without_a_name_for_its_system_is_linux(monkeypatch):
    def missing():
        raise OSError

    monkeypatch.setattr(platform, "freedesktop_os_release", missing)
    assert module.node_info()["osImage"] == "Linux"


def test_the_table_says_ready(node):
    whole = {**node, "metadata": {**node["metadata"], "creationTimestamp": "2023-11-14T22:13:20Z"}}
    cells = {column.name: column.show(whole, 1_700_000_000.0) for column in COLUMNS[NODE]}
    assert cells["Status"] == "Ready"
    assert cells["Internal-IP"] == "10.0.0.1"
