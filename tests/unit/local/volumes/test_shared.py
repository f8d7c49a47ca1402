"""Files that many pods see: which volumes share a directory, and what a change costs."""

import os
from pathlib import Path
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, Kind
from vcjob.local.node.identity import IdMaps, IdRange
from vcjob.local.volumes.ownership import Ownership
from vcjob.local.volumes.pod_volumes import PodVolumes, VolumeWorld
from vcjob.local.volumes.shared import SharedFiles

HOSTS = {"name": "v", "configMap": {"name": "hosts"}}
LABELS = {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}


def projected(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"name": "v", "projected": {"sources": list(sources)}}


@pytest.mark.parametrize(
    ("volume", "is_shared"),
    [
        (HOSTS, True),
        ({"name": "v", "secret": {"secretName": "s"}}, True),
        (projected({"configMap": {"name": "a"}}, {"secret": {"name": "b"}}), True),
        ({"name": "v", "downwardAPI": LABELS}, False),
        (projected({"configMap": {"name": "a"}}, {"downwardAPI": LABELS}), False),
    ],
)
def test_only_what_does_not_speak_of_the_pod_is_shared(
    volume: dict[str, Any], is_shared: bool
) -> None:
    place = SharedFiles("/run").place("default", volume, Ownership())
    assert bool(place) is is_shared


@pytest.mark.parametrize(
    ("namespace", "volume", "owner"),
    [
        ("other", HOSTS, Ownership()),
        ("default", {"name": "v", "configMap": {"name": "other"}}, Ownership()),
        ("default", {"name": "v", "configMap": {"name": "hosts", "defaultMode": 0o400}},
         Ownership()),
        ("default", HOSTS, Ownership(group=7, shared=True)),
    ],
)  # fmt: skip
def test_another_namespace_description_or_owner_is_another_directory(
    namespace: str, volume: dict[str, Any], owner: Ownership
) -> None:
    shared = SharedFiles("/run")
    assert shared.place(namespace, volume, owner) != shared.place("default", HOSTS, Ownership())


def test_the_name_that_a_pod_gives_the_volume_makes_no_difference() -> None:
    shared = SharedFiles("/run")
    renamed = {**HOSTS, "name": "w"}
    assert shared.place("default", HOSTS, Ownership()) == shared.place(
        "default", renamed, Ownership()
    )


def test_pods_see_one_directory_and_a_change_is_written_once(tmp_path: Path) -> None:
    config_map = {"data": {"worker.host": "one"}}

    def find(kind: Kind, name: str) -> dict[str, Any] | None:
        return config_map if (kind, name) == (CONFIG_MAP, "hosts") else None

    maps = IdMaps((IdRange(0, os.getuid(), 1),), (IdRange(0, os.getgid(), 1),))
    world = VolumeWorld(str(tmp_path / "claims"), maps)
    shared = SharedFiles(str(tmp_path / "shared"))
    mount = {"name": "v", "mountPath": "/etc/volcano"}
    container = {"name": "c", "volumeMounts": [mount]}
    pods = []
    for number in range(3):
        metadata = {"name": f"p{number}", "namespace": "default"}
        pod = {"metadata": metadata, "spec": {"volumes": [HOSTS], "containers": [container]}}
        volumes = PodVolumes(pod, str(tmp_path / f"p{number}"), find, world, shared)
        volumes.make(pod)
        pods.append((pod, volumes))
    sources = {volumes.mounts(container, {}).mounts[0].source for _, volumes in pods}
    assert len(sources) == 1
    place = Path(sources.pop())
    config_map["data"] = {"worker.host": "one\ntwo"}
    pods[0][1].update(pods[0][0])
    current = os.readlink(place / "..data")
    assert (place / "worker.host").read_text() == "one\ntwo"
    for pod, volumes in pods[1:]:
        volumes.update(pod)
    assert os.readlink(place / "..data") == current
