import os
from pathlib import Path

import pytest

from vcjob.local.node.passages import closed_directories


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory that others may reach; pytest's own are closed to them."""
    for directory in (tmp_path, *tmp_path.parents):
        if os.stat(directory).st_uid == os.geteuid() and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o001)
    return tmp_path


def test_wanted_places_are_found_under_the_topmost_closed_directory(base: Path) -> None:
    (base / "home").mkdir(mode=0o700)
    (base / "home" / "inner").mkdir(mode=0o700)
    (base / "home" / "inner" / "state").mkdir()
    (base / "home" / "file").touch()
    wanted = [str(base / "home" / "inner" / "state"), str(base / "home" / "file")]
    assert closed_directories(wanted) == {str(base / "home"): sorted(wanted)}


def test_a_place_below_a_wanted_one_comes_with_it(base: Path) -> None:
    (base / "home" / "env" / "lib").mkdir(parents=True)
    (base / "home").chmod(0o700)
    env = str(base / "home" / "env")
    assert closed_directories([f"{env}/lib", env]) == {str(base / "home"): [env]}


def test_links_are_followed_to_where_they_lead(base: Path) -> None:
    (base / "home" / "env").mkdir(parents=True)
    (base / "home").chmod(0o700)
    (base / "link").symlink_to(base / "home" / "env")
    assert closed_directories([str(base / "link")]) == {
        str(base / "home"): [str(base / "home" / "env")]
    }


def test_what_everybody_may_reach_or_does_not_exist_needs_no_passage(base: Path) -> None:
    assert closed_directories([str(base), str(base / "missing")]) == {}
