import os
import stat
from pathlib import Path

import pytest

from vcjob.local.node.etc_copy import copy_public, is_secret


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


@pytest.mark.parametrize(
    ("path", "mode", "secret"),
    [
        ("/etc/passwd", stat.S_IFREG | 0o644, False),
        ("/etc/kept", stat.S_IFREG | 0o640, True),
        ("/etc/shadow", stat.S_IFREG | 0o644, True),
        ("/etc/ssh/ssh_host_rsa_key", stat.S_IFREG | 0o644, True),
        ("/etc/ssh/ssh_host_rsa_key.pub", stat.S_IFREG | 0o644, False),
        ("/etc/app/tls.key", stat.S_IFREG | 0o644, True),
        ("/etc/ssl", stat.S_IFDIR | 0o755, False),
        ("/etc/listed", stat.S_IFDIR | 0o754, True),
    ],
)
def test_what_is_closed_to_others_or_secret_by_name_is_a_secret(
    path: str, mode: int, secret: bool
) -> None:
    assert is_secret(path, mode) is secret


def test_what_every_pod_has_of_its_own_is_not_copied(tmp_path: Path) -> None:
    copy_public("/etc", str(tmp_path / "copy"))
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert "passwd" in names
    assert not names & {"hosts", "hostname", "resolv.conf", "nsswitch.conf", "shadow"}
