"""Files of output: their bounds, their names, and the last line in them."""

import os
from pathlib import Path

import pytest

from vcjob.local.agent.log_files import LogFiles, files_in, last_line
from vcjob.local.sandbox.paths import UnsafePath


def test_a_file_is_set_aside_once_it_is_full(tmp_path: Path) -> None:
    files = LogFiles(str(tmp_path), pytest.fail, file_limit=10)
    path = files.path("ns", "pod", "main", 3)
    for text in (b"first..\n", b"second.\n", b"third..\n"):
        files.append(path, text)
    assert Path(path).read_bytes() == b"third..\n"
    assert Path(f"{path}.1").read_bytes() == b"second.\n"


def test_all_files_together_stay_within_their_limit_and_the_oldest_goes(tmp_path: Path) -> None:
    files = LogFiles(str(tmp_path), pytest.fail, total_limit=100)
    paths = [files.path("ns", f"pod-{number}", "main", 0) for number in range(5)]
    for path in (*paths, paths[0]):
        files.append(path, b"x" * 30)
    assert [Path(path).exists() for path in paths] == [True, False, False, True, True]


def test_files_of_earlier_engines_count_and_go_first(tmp_path: Path) -> None:
    def files() -> LogFiles:
        return LogFiles(str(tmp_path), pytest.fail, total_limit=300, clock=lambda: 1)

    earlier = files()
    paths = [earlier.path("ns", f"pod-{number}", "main", 0) for number in range(4)]
    for time, path in enumerate(paths[:3]):
        earlier.append(path, b"x" * 80, "u")
        for name in (path, f"{path}.times"):
            os.utime(name, (time, time))
    later = files()
    later.append(paths[1], b"x", "u")
    later.take_in(files_in(str(tmp_path)))
    later.append(paths[3], b"x" * 180, "u")
    assert [Path(path).exists() for path in paths] == [False, True, False, True]


@pytest.mark.parametrize("container", ["..", "a/b", "", "a\0b"])
def test_a_name_that_leads_out_gets_no_file(tmp_path: Path, container: str) -> None:
    with pytest.raises(UnsafePath):
        LogFiles(str(tmp_path), pytest.fail).path("ns", "pod", container, 0)


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        ({}, b""),
        ({0: b""}, b""),
        ({0: b"one\ntwo\n"}, b"two"),
        ({0: b"one\ntwo"}, b"two"),
        ({0: b"x" * 10_000 + b"\nshort\n"}, b"short"),
        ({2: b"second\n", 9: b"ninth\n", 10: b"tenth\n"}, b"tenth"),  # by number, not by letter
        ({0: b"of the first run\n", 1: b""}, b""),
    ],
)
def test_the_last_line_is_that_of_the_latest_run(
    tmp_path: Path, runs: dict[int, bytes], line: bytes
) -> None:
    files = LogFiles(str(tmp_path), pytest.fail)
    for number, output in runs.items():
        files.append(files.path("ns", "pod", "main", number), output)
    assert last_line(str(tmp_path), "ns", "pod", "main") == line
