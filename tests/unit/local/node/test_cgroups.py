import os
from pathlib import Path

import pytest

from vcjob.local.node import cgroups
from vcjob.local.node.cgroups import ControlGroups


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups.os, "geteuid", lambda: 0)


def hierarchy(directory: Path, version: int) -> str:
    if version == 2:
        (directory / "cgroup.controllers").touch()
    for name in ("memory", "pids"):
        (directory / name).mkdir()
    return str(directory)


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("version", [1, 2])
def test_groups_of_runs_that_are_gone_are_taken_away(tmp_path: Path, version: int) -> None:
    mount = hierarchy(tmp_path, version)
    below = tmp_path if version == 2 else tmp_path / "pids"
    gone, alive = below / "vcjob-999999999", below / f"vcjob-{os.getpid()}"
    foreign = below / "vcjob-of-somebody"
    for directory in (gone / "1", alive, foreign):
        directory.mkdir(parents=True)
    ControlGroups.make(os.getppid(), mount)
    assert (gone.exists(), alive.exists(), foreign.exists()) == (False, True, True)


def test_an_ordinary_user_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cgroups.os, "geteuid", lambda: 1000)
    assert ControlGroups.make(1, hierarchy(tmp_path, 2)) is None


@pytest.mark.usefixtures("as_root")
def test_no_hierarchy_no_groups(tmp_path: Path) -> None:
    assert ControlGroups.make(1, str(tmp_path / "none")) is None
