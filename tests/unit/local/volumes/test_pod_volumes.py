import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.local.node.identity import IdMaps, IdRange
from vcjob.local.node.messages import MakeBelow, Mount
from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.paths import UnsafePath
from vcjob.local.volumes.objects import MissingReference, VolumeRefused
from vcjob.local.volumes.pod_volumes import PodVolumes, VolumeWorld

_ALL = IdMaps((IdRange(0, 0, 65536),), (IdRange(0, 0, 65536),))


class _Pod:
    """A pod with volumes below a directory, and what its namespace holds."""

    def __init__(
        self,
        directory: Path,
        volumes: list[Object],
        objects: Mapping[tuple[str, str], Object] | None = None,
        mounts: list[Object] | None = None,
        context: Object | None = None,
        binds: tuple[BindMount, ...] = (),
        host_paths: tuple[Path, ...] = (),
    ) -> None:
        self.objects = dict(objects or {})
        self.container: Object = {"name": "main", "volumeMounts": mounts or []}
        self.pod: Object = {
            "metadata": {"name": "p", "namespace": "ns", "labels": {"a": "1"}},
            "spec": {
                "containers": [self.container],
                "volumes": volumes,
                "securityContext": context or {},
            },
        }
        self.directory = directory / "pod"
        world = VolumeWorld(
            claims=str(directory / "claims"),
            maps=_ALL,
            host_paths=tuple(map(str, host_paths)),
            binds=binds,
            capacity={"memory": "1Gi"},
        )
        self.volumes = PodVolumes(self.pod, str(self.directory), self._find, world)

    def _find(self, kind: Kind, name: str) -> Object | None:
        return self.objects.get((kind.kind, name))

    def place(self, volume: str) -> Path:
        return self.directory / "volumes" / volume

    def mounts(self, variables: Mapping[str, str] = {}) -> tuple[BindMount, ...]:
        return self.volumes.mounts(self.container, variables).mounts


def _config_map(data: Mapping[str, str]) -> dict[tuple[str, str], Object]:
    return {("ConfigMap", "c"): {"metadata": {"name": "c"}, "data": dict(data)}}


def _volume(**fields: Any) -> list[Object]:
    return [{"name": "v", **fields}]


def _mount(path: str = "/v", **fields: Any) -> list[Object]:
    return [{"name": "v", "mountPath": path, **fields}]


def _tree(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.relative_to(directory).parts[0].startswith("..")
    }


def test_empty_dir_on_disk_is_open_to_all_users_of_the_pod_and_to_no_others(tmp_path: Path) -> None:
    pod = _Pod(tmp_path, _volume(emptyDir={}), mounts=_mount(readOnly=True))
    assert pod.volumes.make(pod.pod) == ()
    assert stat.S_IMODE(pod.place("v").stat().st_mode) == 0o777
    assert stat.S_IMODE(pod.place("v").parent.stat().st_mode) == 0o700
    assert pod.mounts() == (BindMount(str(pod.place("v")), "/v", read_only=True),)


@pytest.mark.parametrize(
    ("limit", "containers", "size"),
    [
        (None, None, 1 << 30),
        ("64Mi", None, 64 << 20),
        ("64Mi", "32Mi", 32 << 20),
        ("8Gi", None, 1 << 30),
    ],
)
def test_empty_dir_in_memory_is_for_the_node_to_mount_once_with_the_smallest_limit(
    tmp_path: Path, limit: str | None, containers: str | None, size: int
) -> None:
    pod = _Pod(tmp_path, _volume(emptyDir={"medium": "Memory", "sizeLimit": limit}))
    if containers:
        pod.container["resources"] = {"limits": {"memory": containers}}
        pod.volumes = PodVolumes(
            pod.pod,
            str(pod.directory),
            pod._find,
            VolumeWorld(str(tmp_path), _ALL, capacity={"memory": "1Gi"}),
        )
    assert pod.volumes.make(pod.pod) == (Mount(str(pod.place("v")), size),)
    assert pod.volumes.make(pod.pod) == ()


@pytest.mark.parametrize(
    ("volume", "files"),
    [
        ({"configMap": {"name": "c"}}, {"one": "1", "two": "2"}),
        ({"configMap": {"name": "c", "items": [{"key": "one", "path": "a/b"}]}}, {"a/b": "1"}),
        ({"configMap": {"name": "none", "optional": True}}, {}),
        (
            {"configMap": {"name": "c", "items": [{"key": "x", "path": "x"}], "optional": True}},
            {},
        ),
        ({"secret": {"secretName": "s"}}, {"key": "secret"}),
        (
            {
                "downwardAPI": {
                    "items": [
                        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                        {
                            "path": "memory",
                            "resourceFieldRef": {
                                "containerName": "main",
                                "resource": "limits.memory",
                                "divisor": "1Mi",
                            },
                        },
                    ]
                }
            },
            {"labels": 'a="1"', "memory": "1024"},
        ),
        (
            {
                "projected": {
                    "sources": [
                        {"configMap": {"name": "c", "items": [{"key": "one", "path": "one"}]}},
                        {"secret": {"name": "s", "items": [{"key": "key", "path": "s/k"}]}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
                                ]
                            }
                        },
                        {"clusterTrustBundle": {"path": "ca", "optional": True}},
                    ]
                }
            },
            {"one": "1", "s/k": "secret", "name": "p"},
        ),
    ],
    ids=["configMap", "items", "absent", "absent-key", "secret", "downwardAPI", "projected"],
)
def test_files_of_objects(tmp_path: Path, volume: Object, files: dict[str, str]) -> None:
    objects = {
        **_config_map({"one": "1", "two": "2"}),
        ("Secret", "s"): {"metadata": {"name": "s"}, "data": {"key": "c2VjcmV0"}},
    }
    pod = _Pod(tmp_path, _volume(**volume), objects, _mount())
    pod.volumes.make(pod.pod)
    shown = _tree(pod.place("v"))
    assert shown | _linked(pod.place("v")) == files
    assert pod.mounts() == (BindMount(str(pod.place("v")), "/v", read_only=True),)


def _linked(directory: Path) -> dict[str, str]:
    """Files below links to directories, which ``rglob`` does not enter."""
    return {
        f"{link.name}/{path.relative_to(link)}": path.read_text()
        for link in directory.iterdir()
        if not link.name.startswith("..") and link.is_dir()
        for path in link.iterdir()
    }


@pytest.mark.parametrize(
    ("volume", "sentence"),
    [
        ({"configMap": {"name": "none"}}, 'ConfigMap "none" does not exist'),
        (
            {"configMap": {"name": "c", "items": [{"key": "x", "path": "x"}]}},
            'ConfigMap "c" has no key "x"',
        ),
        ({"persistentVolumeClaim": {"claimName": "data"}}, 'claim "data" does not exist'),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            "no server here that could issue a serviceAccountToken",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, volume: Object, sentence: str) -> None:
    pod = _Pod(tmp_path, _volume(**volume), _config_map({"one": "1"}))
    with pytest.raises(MissingReference, match=sentence):
        pod.volumes.make(pod.pod)


@pytest.mark.parametrize(
    "volume",
    [{"nfs": {"server": "s", "path": "/"}}, {"emptyDir": {"medium": "HugePages-2Mi"}}],
)
def test_a_volume_that_no_machine_of_this_kind_has_is_refused(
    tmp_path: Path, volume: Object
) -> None:
    with pytest.raises(VolumeRefused, match="not to be had on this machine"):
        _Pod(tmp_path, _volume(**volume))


def test_modes_are_those_asked_for_and_fs_group_adds_reading(tmp_path: Path) -> None:
    items = [{"key": "one", "path": "one", "mode": 0o400}, {"key": "two", "path": "two"}]
    volume = {"configMap": {"name": "c", "items": items, "defaultMode": 0o600}}
    for context, modes in (({}, (0o400, 0o600)), ({"fsGroup": 2000}, None)):
        pod = _Pod(
            tmp_path / str(len(context)),
            _volume(**volume),
            _config_map({"one": "1", "two": "2"}),
            context=context,
        )
        pod.volumes.make(pod.pod)
        found = tuple(stat.S_IMODE((pod.place("v") / n).stat().st_mode) for n in ("one", "two"))
        added = 0o440 if os.geteuid() == 0 else 0o444
        assert found == (modes or (0o400 | added, 0o600 | added))


def test_a_change_replaces_all_files_in_one_rename_and_readers_keep_the_old(tmp_path: Path) -> None:
    pod = _Pod(
        tmp_path, _volume(configMap={"name": "c"}), _config_map({"one": "1", "two": "2"}), _mount()
    )
    pod.volumes.make(pod.pod)
    reader = os.open(pod.place("v") / "..data", os.O_RDONLY)
    pod.objects = _config_map({"one": "changed", "three": "3"})
    try:
        with open(pod.place("v") / "two") as opened:
            pod.volumes.update(pod.pod)
            assert opened.read() == "2"
    finally:
        os.close(reader)
    assert _tree(pod.place("v")) == {"one": "changed", "three": "3"}
    assert len([n for n in os.listdir(pod.place("v")) if n.startswith("..2")]) == 1


def test_an_update_without_a_change_writes_nothing(tmp_path: Path) -> None:
    pod = _Pod(tmp_path, _volume(configMap={"name": "c"}), _config_map({"one": "1"}))
    pod.volumes.make(pod.pod)
    before = os.readlink(pod.place("v") / "..data")
    pod.volumes.update(pod.pod)
    assert os.readlink(pod.place("v") / "..data") == before


def test_where_an_object_went_the_files_stay_and_other_volumes_follow(tmp_path: Path) -> None:
    volumes = [
        {"name": "v", "configMap": {"name": "c"}},
        {
            "name": "w",
            "downwardAPI": {
                "items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels['a']"}}]
            },
        },
    ]
    pod = _Pod(tmp_path, volumes, _config_map({"one": "1"}))
    pod.volumes.make(pod.pod)
    pod.objects.clear()
    pod.pod["metadata"]["labels"]["a"] = "2"
    with pytest.raises(MissingReference):
        pod.volumes.update(pod.pod)
    assert _tree(pod.place("v")) == {"one": "1"}
    assert _tree(pod.place("w")) == {"a": "2"}


def test_a_sub_path_of_files_is_one_file_as_it_was_when_the_container_started(
    tmp_path: Path,
) -> None:
    pod = _Pod(
        tmp_path,
        _volume(configMap={"name": "c"}),
        _config_map({"one": "1"}),
        _mount("/etc/one", subPath="one"),
    )
    pod.volumes.make(pod.pod)
    (mount,) = pod.mounts()
    assert (mount.sub_path, mount.read_only, mount.file) == ("one", True, True)
    pod.objects = _config_map({"one": "changed"})
    pod.volumes.update(pod.pod)
    assert Path(mount.source, "one").read_text() == "1"
    assert Path(pod.mounts()[0].source, "one").read_text() == "changed"
    pod.container["volumeMounts"] = _mount("/etc/two", subPath="two")
    with pytest.raises(MissingReference, match="has no file two"):
        pod.mounts()


def test_a_claim_keeps_its_content_for_the_next_run(tmp_path: Path) -> None:
    volume = _volume(persistentVolumeClaim={"claimName": "data", "readOnly": True})
    claim = {("PersistentVolumeClaim", "data"): {"metadata": {"name": "data"}}}
    first = _Pod(tmp_path, volume, claim, _mount())
    first.volumes.make(first.pod)
    (mount,) = first.mounts()
    assert mount.read_only
    (Path(mount.source) / "kept").write_text("x")
    second = _Pod(tmp_path, volume, {}, _mount())
    second.volumes.make(second.pod)
    assert (Path(second.mounts()[0].source) / "kept").read_text() == "x"


def test_a_sub_path_is_made_open_to_the_pods_users_and_asked_of_the_node_too(
    tmp_path: Path,
) -> None:
    pod = _Pod(
        tmp_path, _volume(emptyDir={}), mounts=_mount(subPathExpr="runs/$(NAME)", readOnly=False)
    )
    pod.volumes.make(pod.pod)
    shown = pod.volumes.mounts(pod.container, {"NAME": "p"})
    assert shown.mounts == (BindMount(str(pod.place("v")), "/v", sub_path="runs/p"),)
    assert shown.make == (MakeBelow(str(pod.place("v")), "runs/p"),)
    assert stat.S_IMODE((pod.place("v") / "runs" / "p").stat().st_mode) == 0o777
    with pytest.raises(VolumeRefused, match="names NAME"):
        pod.mounts()


@pytest.mark.parametrize("sub_path", ["../x", "a/../../x", "/etc"])
def test_a_sub_path_that_leads_out_is_refused(tmp_path: Path, sub_path: str) -> None:
    pod = _Pod(tmp_path, _volume(emptyDir={}), mounts=_mount(subPath=sub_path))
    pod.volumes.make(pod.pod)
    with pytest.raises(UnsafePath):
        pod.mounts()


@pytest.mark.parametrize("planted", ["out", "out/deeper"])
def test_a_link_planted_in_a_volume_leads_nowhere(tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    pod = _Pod(tmp_path, _volume(emptyDir={}), mounts=_mount(subPath=planted))
    pod.volumes.make(pod.pod)
    (pod.place("v") / "out").symlink_to(outside)
    with pytest.raises(UnsafePath, match="leads out"):
        pod.mounts()
    assert list(outside.iterdir()) == []


def test_host_path_only_below_what_the_user_allowed(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    inside = {"path": str(allowed / "made"), "type": "DirectoryOrCreate"}
    pod = _Pod(tmp_path, _volume(hostPath=inside), mounts=_mount(subPath=""), host_paths=(allowed,))
    pod.volumes.make(pod.pod)
    assert pod.mounts() == (BindMount(str(allowed), "/v", sub_path="made"),)
    assert (allowed / "made").is_dir()
    for path in (tmp_path, tmp_path / "allowed-not", allowed / ".." / "x"):
        other = _Pod(
            tmp_path,
            _volume(hostPath={"path": str(path)}),
            mounts=_mount(),
            host_paths=(allowed,),
        )
        with pytest.raises(VolumeRefused):
            other.mounts()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("File", "is not a file"),
        ("Socket", "is not a socket"),
        ("CharDevice", "devices of this machine are not given"),
        ("Nonsense", "there is no type 'Nonsense'"),
    ],
)
def test_host_path_types_are_checked(tmp_path: Path, kind: str, sentence: str) -> None:
    volume = _volume(hostPath={"path": str(tmp_path), "type": kind})
    pod = _Pod(tmp_path, volume, mounts=_mount(), host_paths=(tmp_path,))
    with pytest.raises(VolumeRefused, match=sentence):
        pod.mounts()


def test_a_link_planted_below_an_allowed_directory_leads_nowhere(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    volume = {"hostPath": {"path": str(allowed / "x" / "y"), "type": "DirectoryOrCreate"}}
    pod = _Pod(tmp_path, _volume(**volume), mounts=_mount(), host_paths=(allowed,))
    (allowed / "x").symlink_to(tmp_path)
    with pytest.raises(UnsafePath):
        pod.mounts()
    assert not (tmp_path / "y").exists()


def test_what_the_user_shows_takes_the_place_of_a_volume(tmp_path: Path) -> None:
    shown = BindMount(str(tmp_path), "/v")
    volume = _volume(hostPath={"path": "/not/allowed"})
    pod = _Pod(tmp_path, volume, mounts=_mount("/v/"), binds=(shown,))
    pod.volumes.make(pod.pod)
    assert pod.mounts() == (shown,)


def test_host_path_below_a_directory_shown_read_only_is_read_only(tmp_path: Path) -> None:
    pod = _Pod(
        tmp_path,
        _volume(hostPath={"path": str(tmp_path)}),
        mounts=_mount(),
        binds=(BindMount(str(tmp_path), "/data", read_only=True),),
    )
    assert pod.mounts()[0].read_only


def test_the_objects_to_watch_are_told(tmp_path: Path) -> None:
    sources = [{"secret": {"name": "s"}}, {"configMap": {"name": "d"}}]
    volumes = [*_volume(configMap={"name": "c"}), {"name": "w", "projected": {"sources": sources}}]
    pod = _Pod(tmp_path, volumes)
    found = {(kind.kind, name) for kind, name in pod.volumes.references}
    assert found == {("ConfigMap", "c"), ("ConfigMap", "d"), ("Secret", "s")}
