import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.local.sandbox.paths import UnsafePath
from vcjob.local.volumes.atomic import current_directory, write_files
from vcjob.local.volumes.content import File, volume_files
from vcjob.local.volumes.downward import file_field

_PARTS = st.sampled_from(["a", "b", ".", "..", "..data", "", "/", "a b", "\0", "..x", "x.."])


def _find(kind: Kind, name: str) -> Object | None:
    return {"metadata": {"name": name}, "data": {"key": "dmFsdWU="}}


@given(st.lists(_PARTS, min_size=1, max_size=5).map("/".join))
def test_whatever_an_item_path_is_nothing_is_written_outside_the_volume(path: str) -> None:
    volume = {"name": "v", "secret": {"secretName": "s", "items": [{"key": "key", "path": path}]}}
    try:
        files = volume_files(volume, {}, _find, {})
    except UnsafePath:
        return
    with tempfile.TemporaryDirectory() as outside:
        directory = Path(outside, "volume")
        directory.mkdir()
        write_files(str(directory), files)
        assert os.listdir(outside) == ["volume"]
        (relative,) = files
        assert (directory / relative).read_bytes() == b"value"
        assert os.path.realpath(directory / relative).startswith(f"{directory}/..2")


@pytest.mark.parametrize("path", ["", "..", "../x", "a/../../x", "/etc/x", "..x", "x\0", "y" * 300])
def test_item_paths_that_lead_out_or_are_none_are_refused_with_the_volume(path: str) -> None:
    item = {"path": path, "fieldRef": {"fieldPath": "metadata.name"}}
    with pytest.raises(UnsafePath, match='volume "v"'):
        volume_files({"name": "v", "downwardAPI": {"items": [item]}}, {}, _find, {})


@pytest.mark.parametrize("key", ["..", "../x", "a/b", "", "..data", "k" * 254])
def test_keys_that_are_none_are_refused(key: str) -> None:
    def find(kind: Kind, name: str) -> Object | None:
        return {"data": {key: ""}}

    with pytest.raises(UnsafePath):
        volume_files({"name": "v", "configMap": {"name": "c"}}, {}, find, {})


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write_files(str(tmp_path), {"a": File(b"1", 0o644)})
    before = sorted(os.listdir(tmp_path))
    clash = {"a": File(b"2", 0o644), "a/b": File(b"3", 0o644)}
    with pytest.raises(OSError, match=r"Not a directory|exists"):
        write_files(str(tmp_path), clash)
    assert (tmp_path / "a").read_bytes() == b"1"
    assert sorted(os.listdir(tmp_path)) == before


def test_a_changed_mode_alone_is_a_change(tmp_path: Path) -> None:
    assert write_files(str(tmp_path), {"a": File(b"1", 0o644)})
    assert not write_files(str(tmp_path), {"a": File(b"1", 0o644)})
    first = current_directory(str(tmp_path))
    assert write_files(str(tmp_path), {"a": File(b"1", 0o600)})
    assert current_directory(str(tmp_path)) != first


def test_labels_as_a_file_are_sorted_and_quoted() -> None:
    pod = {"metadata": {"annotations": {"b": 'say "hi"\n\\', "a": "é\x07\x01"}}}
    assert file_field(pod, "metadata.annotations") == ('a="é\\a\\x01"\nb="say \\"hi\\"\\n\\\\"')
