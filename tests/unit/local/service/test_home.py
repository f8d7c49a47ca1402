"""One engine a user: the lock, and what is known of who holds it."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vcjob.local.run_directory import StateUnusable
from vcjob.local.service import home as module
from vcjob.local.service.home import AlreadyRunning, EngineHome, EngineRecord, write_private

HOLD = """
import sys, time
from pathlib import Path
from vcjob.local.service.home import EngineHome
EngineHome(Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> EngineHome:
    return EngineHome(tmp_path / "engine")


def test_the_lock_ends_with_who_holds_it(home: EngineHome) -> None:
    assert home.running() == 0
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, home.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert home.running() == holder.pid
    with pytest.raises(AlreadyRunning, match=str(holder.pid)):
        home.acquire()
    holder.kill()
    holder.communicate()
    assert home.running() == 0
    descriptor = home.acquire()
    assert home.running() == os.getpid()
    os.close(descriptor)


def test_a_lock_that_a_dead_process_left_is_waited_for(
    home: EngineHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    held = [home.acquire()]
    os.ftruncate(held[0], 0)
    os.pwrite(held[0], str(dead.pid).encode(), 0)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: os.close(held.pop()))
    os.close(home.acquire())
    assert not held


def test_a_record_is_read_back_and_rubbish_is_none(home: EngineHome) -> None:
    home.make()
    assert home.read_record() is None
    record = EngineRecord(1, 2.0, "https://127.0.0.1:3", "/k", "4")
    home.write_record(record)
    assert home.read_record() == record
    home.record.write_text("{")
    assert home.read_record() is None


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "engine").write_text("a file")
    with pytest.raises(StateUnusable, match="XDG_STATE_HOME"):
        EngineHome(tmp_path / "engine").make()
    with pytest.raises(StateUnusable, match="cannot write"):
        write_private(tmp_path / "none" / "x", b"")


def test_a_lock_that_no_number_can_be_written_to_is_given_up_and_named(
    home: EngineHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, "pwrite", full)
    with pytest.raises(StateUnusable, match="lock: No space left on device"):
        home.acquire()
    monkeypatch.undo()
    os.close(home.acquire())


def test_a_private_file_is_replaced_at_once(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")
    with file.open() as reader:
        write_private(file, b"new")
        assert reader.read() == "old"
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
