"""What this machine has for pods: processors and memory that this process may use.

Source: Linux kernel documentation, "Control Group v2" (cpu.max, memory.max); proc(5).
"""

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from vcjob.api.quantity import Notation, format_quantity

_KIB = 1024
_MOST_PROCESSES = 32768


def machine_capacity(root: Path = Path("/")) -> dict[str, str]:
    """Amounts of ``cpu`` and ``memory``, as quantities.

    Where this process is bounded by control groups (in a container), the tightest bound counts.
    ``root`` is where ``proc`` and ``sys`` are looked for.
    """
    cpu = Fraction(len(os.sched_getaffinity(0)))
    memory = _total_memory(root)
    for directory in _control_groups(root):
        quota, _, period = _read(directory / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            cpu = min(cpu, Fraction(int(quota), int(period)))
        most = _read(directory / "memory.max")
        if most.isdigit():
            memory = min(memory, int(most))
    return {
        "cpu": format_quantity(cpu),
        "memory": format_quantity(memory // _KIB * _KIB, Notation.BINARY),
    }


def process_limit(root: Path = Path("/")) -> int:
    """How many processes and threads one container may have.

    A quarter of the numbers that the kernel gives to processes (proc(5), pid_max; 32768 by default)
    at most, so that no single container can take them all from this machine.
    """
    numbers = _read(root / "proc/sys/kernel/pid_max")
    return min(_MOST_PROCESSES, int(numbers) // 4) if numbers.isdigit() else _MOST_PROCESSES


def _total_memory(root: Path) -> int:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemTotal":
            return int(amount.split()[0]) * _KIB
    raise RuntimeError("/proc/meminfo lacks MemTotal")


def _control_groups(root: Path) -> Iterator[Path]:
    """The control groups that this process is in, from the inside out (version 2)."""
    base = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        hierarchy, _, path = line.partition("::")
        if hierarchy != "0":
            continue
        inner = base / path.lstrip("/")
        yield inner
        yield from (parent for parent in inner.parents if parent.is_relative_to(base))


def _read(path: Path) -> str:
    """The text of a file, empty if there is none: not every kernel has every file."""
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
