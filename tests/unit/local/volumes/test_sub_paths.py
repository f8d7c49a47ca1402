"""Parts of volumes: what they are, and that making them follows no link and takes nothing over."""

import os
import stat
from pathlib import Path

import pytest

from vcjob.local.sandbox.paths import UnsafePath
from vcjob.local.volumes.atomic import write_files
from vcjob.local.volumes.content import File
from vcjob.local.volumes.objects import VolumeRefused
from vcjob.local.volumes.ownership import Ownership
from vcjob.local.volumes.sub_paths import is_file, keep_today, make_directories_open_to_all

US = Ownership()


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    found = tmp_path / "volume"
    (found / "there").mkdir(parents=True)
    (found / "there").chmod(0o700)
    (found / "file").touch()
    (found / "out").symlink_to(tmp_path)
    return found


@pytest.mark.parametrize(
    ("path", "file"), [("file", True), ("there", False), ("missing", False), ("there/no", False)]
)
def test_what_is_there_is_a_file_or_is_to_be_a_directory(
    volume: Path, path: str, file: bool
) -> None:
    assert is_file(str(volume), path) is file


def test_missing_directories_are_open_to_all_and_those_there_stay_as_they_are(
    volume: Path,
) -> None:
    make_directories_open_to_all(str(volume), "there/a/b", US)
    modes = [stat.S_IMODE((volume / path).stat().st_mode) for path in ("there", "there/a/b")]
    assert modes[0] == 0o700
    assert modes[1] & 0o777 == 0o777


def test_nothing_is_made_below_a_file_or_a_link_that_leads_out(volume: Path) -> None:
    with pytest.raises(VolumeRefused, match="file is not a directory"):
        make_directories_open_to_all(str(volume), "file/a", US)
    with pytest.raises((UnsafePath, VolumeRefused)):
        make_directories_open_to_all(str(volume), "out/a", US)
    assert not (volume.parent / "a").exists()


def test_what_was_mounted_in_parts_stays_when_the_volume_changes(tmp_path: Path) -> None:
    volume = str(tmp_path / "volumes" / "v")
    os.makedirs(volume)
    kept = []
    for text in (b"old", b"new", b"new"):
        write_files(volume, {"key": File(text, 0o644)})
        kept.append(keep_today(str(tmp_path), "v", volume, US))
    assert Path(kept[0], "key").read_bytes() == b"old"
    assert Path(kept[1], "key").read_bytes() == b"new"
    assert kept[1] == kept[2], "the same state is kept once"
