"""Memory of process trees, read from a made-up /proc, and the end of who takes too much."""

import signal
from pathlib import Path
from typing import cast

import pytest

from vcjob.local.node import memory
from vcjob.local.node.containers import Container
from vcjob.local.node.memory import kill_over_limit, used_by_trees

PAGE = memory._PAGE


def process(proc: Path, number: int, parent: int, own_pages: int, name: str = "sh") -> None:
    """A process that holds so many pages for itself and ten of files."""
    directory = proc / str(number)
    directory.mkdir()
    (directory / "stat").write_text(f"{number} ({name}) S {parent} 1 1 0")
    (directory / "statm").write_text(f"1000000 {own_pages + 10} 10 1 0 1 0")


def test_a_tree_counts_with_all_its_descendants_and_no_pages_of_files(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, 1000)
    process(tmp_path, 10, 1, 1)
    process(tmp_path, 11, 10, 2, name="a) S 1 (b")
    process(tmp_path, 12, 11, 4)
    process(tmp_path, 20, 1, 8)
    (tmp_path / "meminfo").touch()
    (tmp_path / "99").mkdir()  # it ended while it was looked at
    used = used_by_trees([10, 20, 30], str(tmp_path))
    assert used == {10: 7 * PAGE, 20: 8 * PAGE, 30: 0}


class Limited:
    """As much of a container as the watch looks at."""

    def __init__(self, process: int, memory_limit: int) -> None:
        self.process = process
        self.memory_limit = memory_limit
        self.out_of_memory = False
        self.sent: list[signal.Signals] = []

    def send(self, number: signal.Signals) -> None:
        self.sent.append(number)


def test_only_who_is_above_its_limit_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "used_by_trees", lambda roots: dict.fromkeys(roots, 100))
    above, within, unlimited = Limited(10, 99), Limited(11, 100), Limited(12, 0)
    containers = cast(list[Container], [above, within, unlimited])
    assert kill_over_limit(containers)
    assert [(one.out_of_memory, one.sent) for one in (above, within, unlimited)] == [
        (True, [signal.SIGKILL]), (False, []), (False, []),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("container", "watched"), [(Limited(0, 100), True), (Limited(10, 0), False)]
)
def test_the_watch_goes_on_while_anybody_has_a_limit(
    monkeypatch: pytest.MonkeyPatch, container: Limited, watched: bool
) -> None:
    monkeypatch.setattr(memory, "used_by_trees", lambda roots: dict.fromkeys(roots, 1000))
    assert kill_over_limit(cast(list[Container], [container])) is watched
    assert container.sent == []
