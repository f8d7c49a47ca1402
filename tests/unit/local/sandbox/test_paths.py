import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vcjob.local.sandbox import paths
from vcjob.local.sandbox.paths import (
    UnsafePath,
    checked_key,
    checked_name,
    checked_relative,
    make_directories_below,
    make_file_below,
    open_below,
    remove_tree,
)


@pytest.fixture(params=["openat2", "component by component"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "openat2":
        monkeypatch.setattr(paths, "_open_beneath", paths._open_by_components)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    inside = tmp_path / "volume"
    (inside / "a").mkdir(parents=True)
    (inside / "a" / "f").write_text("content")
    (inside / "up").symlink_to("..")
    (inside / "absolute").symlink_to(tmp_path)
    (inside / "file").symlink_to(tmp_path / "secret")
    return inside


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("path", ["up", "up/secret", "absolute/secret", "file"])
def test_no_link_leads_out(volume: Path, path: str) -> None:
    with pytest.raises((UnsafePath, NotADirectoryError)):
        os.close(open_below(str(volume), path))


@pytest.mark.usefixtures("kernel")
def test_what_is_inside_opens(volume: Path) -> None:
    with os.fdopen(open_below(str(volume), "a/./f", os.O_RDONLY)) as file:
        assert file.read() == "content"


@pytest.mark.usefixtures("kernel")
def test_making_files_and_directories_stays_inside(volume: Path) -> None:
    make_directories_below(str(volume), "b/c")
    make_file_below(str(volume), "b/c/d/f")
    assert (volume / "b/c/d/f").read_bytes() == b""
    with pytest.raises((UnsafePath, NotADirectoryError)):
        make_file_below(str(volume), "up/stray")
    with pytest.raises((UnsafePath, NotADirectoryError)):
        make_directories_below(str(volume), "absolute/stray")
    assert not (volume.parent / "stray").exists()


def test_removal_follows_no_link_and_opens_closed_directories(volume: Path) -> None:
    (volume / "a").chmod(0)
    remove_tree(str(volume))
    assert not volume.exists()
    assert (volume.parent / "secret").read_text() == "secret"
    remove_tree(str(volume))


def test_removal_of_a_link_removes_the_link(volume: Path) -> None:
    remove_tree(str(volume / "absolute"))
    assert (volume.parent / "secret").exists()
    assert not (volume / "absolute").is_symlink()


def test_removal_has_no_limit_of_depth(tmp_path: Path) -> None:
    top = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):  # deeper than Python's recursion and than PATH_MAX allow
        os.mkdir("d" * 10, dir_fd=top)
        below = os.open("d" * 10, os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
    os.close(top)
    remove_tree(str(tmp_path / ("d" * 10)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["", ".", "..", "..data", "a/b", "a b", "x" * 254, "a\0", "a\n"])
def test_keys_that_are_refused(key: str) -> None:
    with pytest.raises(UnsafePath):
        checked_key(key)


@pytest.mark.parametrize("path", ["/a", "../a", "a/../b", "a/..", "a\0"])
def test_relative_paths_that_are_refused(path: str) -> None:
    with pytest.raises(UnsafePath):
        checked_relative(path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(UnsafePath):
        checked_name(name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="a./\0-", max_size=12))
def test_a_checked_path_never_leaves_its_directory(path: str) -> None:
    try:
        checked = checked_relative(path)
    except UnsafePath:
        return
    assert os.path.normpath(os.path.join("/base", checked)).startswith("/base")
