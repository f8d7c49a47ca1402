import os
import stat
from pathlib import Path

import pytest

from vcjob.local.node.etc_view import copy_public


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    directory = tmp_path / "etc"
    (directory / "ssl").mkdir(parents=True)
    (directory / "hosts").write_text("127.0.0.1 localhost\n")
    (directory / "ssl" / "openssl.cnf").write_text("[openssl]\n")
    (directory / "localtime").symlink_to("/usr/share/zoneinfo/UTC")
    return directory


def test_files_directories_and_links_are_copied_with_modes_and_times(
    etc: Path, tmp_path: Path
) -> None:
    (etc / "hosts").chmod(0o755)
    os.utime(etc / "ssl", ns=(5, 7))
    copy_public(str(etc), str(tmp_path / "copy"))
    copy = tmp_path / "copy"
    assert (copy / "hosts").read_text() == "127.0.0.1 localhost\n"
    assert stat.S_IMODE((copy / "hosts").stat().st_mode) == 0o755
    assert (copy / "ssl" / "openssl.cnf").read_text() == "[openssl]\n"
    assert (copy / "ssl").stat().st_mtime_ns == 7
    assert os.readlink(copy / "localtime") == "/usr/share/zoneinfo/UTC"


def test_secrets_are_left_out_with_all_that_is_below_them(etc: Path, tmp_path: Path) -> None:
    (etc / "shadow").touch(0o640)
    (etc / "private").mkdir(0o700)
    (etc / "private" / "open").touch(0o644)
    (etc / "server.key").touch(0o644)
    copy_public(str(etc), str(tmp_path / "copy"))
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"hosts", "ssl", "localtime"}


def test_what_is_no_file_is_left_out_and_never_waited_for(etc: Path, tmp_path: Path) -> None:
    os.mkfifo(etc / "pipe", 0o644)
    copy_public(str(etc), str(tmp_path / "copy"))
    assert not (tmp_path / "copy" / "pipe").exists()
