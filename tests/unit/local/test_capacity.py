"""What this machine has, from files as the kernel writes them."""

import os
from pathlib import Path

import pytest

from vcjob.api.quantity import parse_quantity
from vcjob.local.capacity import machine_capacity, process_limit

GIB = 1024**3


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 processors and 16 GiB; this process is in the group /slice/inner."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    write(tmp_path / "proc/meminfo", f"MemTotal:  {16 * GIB // 1024} kB\nMemFree: 1 kB\n")
    write(tmp_path / "proc/self/cgroup", "1:cpu:/elsewhere\n0::/slice/inner\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_bounds_it_is_the_whole_machine(root: Path) -> None:
    assert machine_capacity(root) == {"cpu": "8", "memory": "16Gi"}


@pytest.mark.parametrize("group", ["", "slice", "slice/inner"])
def test_the_bounds_of_every_group_around_count(root: Path, group: str) -> None:
    write(root / "sys/fs/cgroup" / group / "cpu.max", "150000 100000\n")
    write(root / "sys/fs/cgroup" / group / "memory.max", f"{4 * GIB}\n")
    assert machine_capacity(root) == {"cpu": "1500m", "memory": "4Gi"}


@pytest.mark.parametrize(("cpu", "memory"), [("max 100000", "max"), ("", ""), ("1", "1x")])
def test_what_is_no_bound_bounds_nothing(root: Path, cpu: str, memory: str) -> None:
    write(root / "sys/fs/cgroup/slice/cpu.max", cpu)
    write(root / "sys/fs/cgroup/slice/memory.max", memory)
    assert machine_capacity(root) == {"cpu": "8", "memory": "16Gi"}


def test_a_group_next_door_does_not_count(root: Path) -> None:
    write(root / "sys/fs/cgroup/other/memory.max", "4096")
    write(root / "sys/fs/cgroup/elsewhere/memory.max", "4096")
    assert machine_capacity(root)["memory"] == "16Gi"


def test_this_machine_has_something() -> None:
    assert all(parse_quantity(amount) > 0 for amount in machine_capacity().values())


@pytest.mark.parametrize(("numbers", "limit"), [("32768", 8192), ("4194304", 32768), ("", 32768)])
def test_one_container_cannot_take_all_process_numbers(
    root: Path, numbers: str, limit: int
) -> None:
    write(root / "proc/sys/kernel/pid_max", f"{numbers}\n")
    assert process_limit(root) == limit
