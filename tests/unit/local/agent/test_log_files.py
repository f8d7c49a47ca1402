"""Files of output: their bounds, their names, and the last line in them."""

import os
from pathlib import Path

import pytest

from vcjob.local.agent.log_files import KEPT_ATTEMPTS, LogFiles, files_in, last_line
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
    ("output", "line"),
    [
        (b"", b""),
        (b"one\ntwo\n", b"two"),
        (b"one\ntwo", b"two"),
        (b"x" * 10_000 + b"\nshort\n", b"short"),
    ],
)
def test_the_last_line_is_what_a_file_ends_with(tmp_path: Path, output: bytes, line: bytes) -> None:
    files = LogFiles(str(tmp_path), pytest.fail)
    path = files.path("ns", "pod", "main", 0)
    assert last_line(path) == b""  # nothing was ever printed
    files.append(path, output)
    assert last_line(path) == line


def test_pods_of_one_name_that_are_kept_apart_have_directories_and_the_latest_few_stay(
    tmp_path: Path,
) -> None:
    files = LogFiles(str(tmp_path), pytest.fail, total_limit=3000, apart=True)
    for attempt in range(1, KEPT_ATTEMPTS + 3):
        for restart in (0, 1):
            path = files.path("ns", "pod", "main", restart, f"uid-{attempt}")
            files.append(path, b"%d.%d" % (attempt, restart) + b"." * 100)
    files.append(files.path("ns", "other", "main", 0, "uid"), b"other")
    attempts = range(3, KEPT_ATTEMPTS + 3)
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"ns_pod_{attempt}" for attempt in attempts), "ns_other",
    }  # fmt: skip
    for attempt in attempts:
        text = (tmp_path / f"ns_pod_{attempt}/main/1.log").read_bytes()
        assert text.startswith(b"%d.1." % attempt)
    assert files.path("ns", "pod", "main", 0, f"uid-{KEPT_ATTEMPTS + 2}").endswith(
        f"/ns_pod_{KEPT_ATTEMPTS + 2}/main/0.log"
    )


def test_what_was_taken_away_no_longer_counts_within_the_limit(tmp_path: Path) -> None:
    files = LogFiles(str(tmp_path), pytest.fail, total_limit=KEPT_ATTEMPTS * 100, apart=True)
    first = files.path("ns", "first", "main", 0, "uid")
    files.append(first, b"x" * 50)
    for attempt in range(3 * KEPT_ATTEMPTS):
        files.append(files.path("ns", "pod", "main", 0, f"uid-{attempt}"), b"x" * 90)
    assert Path(first).exists()
