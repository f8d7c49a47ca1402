"""Directories of runs: locked while they run, cleaned up once they do not."""

import contextlib
import os
import stat
from pathlib import Path

import pytest

from vcjob.local.node.options import NODE_LOG
from vcjob.local.run_directory import StateUnusable, leftovers, open_run, state_root


def test_the_state_directory_follows_xdg() -> None:
    assert state_root({"XDG_STATE_HOME": "/data/state"}) == Path("/data/state/vcjob")
    assert state_root({"XDG_STATE_HOME": "relative"}) == Path.home() / ".local/state/vcjob"
    assert state_root({}) == Path.home() / ".local/state/vcjob"


def test_a_run_has_private_directories(tmp_path: Path) -> None:
    run = open_run(tmp_path / "vcjob")
    for directory in (tmp_path / "vcjob", run.path, run.logs, run.pods, run.node):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    run.close()


@pytest.mark.parametrize(("said", "stays"), [("", False), ("Traceback", True)])
def test_what_the_node_process_said_stays_if_it_is_something(
    tmp_path: Path, said: str, stays: bool
) -> None:
    run = open_run(tmp_path)
    (run.node / NODE_LOG).write_text(said)
    with contextlib.suppress(OSError):
        run.remove_node()
    assert run.node.exists() is stays
    run.close()


def test_what_a_running_run_uses_is_no_leftover(tmp_path: Path) -> None:
    run = open_run(tmp_path)
    other = open_run(tmp_path)
    assert leftovers(tmp_path) == []
    run.close()
    assert leftovers(tmp_path) == [run.pods, run.node]
    other.close()


def test_logs_stay_of_the_latest_runs_only(tmp_path: Path) -> None:
    runs = [open_run(tmp_path) for _ in range(4)]
    for run in runs:
        run.close()
    oldest, *_, latest = sorted(run.path for run in runs)
    found = leftovers(tmp_path, kept=3)
    assert oldest in found
    assert latest not in found
    assert latest / "logs" not in found
    assert latest / "pods" in found


def test_a_run_that_has_not_taken_its_lock_yet_is_left_alone(tmp_path: Path) -> None:
    starting = tmp_path / "runs" / "20260101-000000-abcdef"
    starting.mkdir(parents=True)
    assert leftovers(tmp_path, kept=0) == []
    os.utime(starting, (0, 0))
    assert leftovers(tmp_path, kept=0) == [starting]


def test_a_state_directory_that_cannot_be_made_is_told_with_the_cure(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(StateUnusable, match="XDG_STATE_HOME"):
        open_run(file / "vcjob")
