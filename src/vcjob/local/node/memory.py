"""How much memory containers use, read from /proc: the watch where no control group can be made.

RLIMIT_AS is no substitute: it counts address space, of which numeric libraries reserve far more
than they use.
"""

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from vcjob.local.node.containers import Container

WATCH_SECONDS = 0.25
"""How often the watch looks."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def kill_over_limit(containers: Iterable[Container]) -> bool:
    """Kill those that use more memory than they may; whether any has a limit to be watched."""
    limited = [one for one in containers if one.memory_limit]
    running = [one for one in limited if one.process]
    if running:
        used = used_by_trees([one.process for one in running])
        for container in running:
            if used[container.process] > container.memory_limit:
                container.out_of_memory = True
                container.send(signal.SIGKILL)
    return bool(limited)


def used_by_trees(roots: Iterable[int], proc: str = "/proc") -> dict[int, int]:
    """Bytes that the process trees below ``roots`` hold for themselves (not file pages)."""
    parents: dict[int, int] = {}
    for name in os.listdir(proc):
        if name.isdigit() and (parent := _parent(f"{proc}/{name}/stat")) is not None:
            parents[int(name)] = parent
    used = dict.fromkeys(roots, 0)
    for process in parents:
        above = process
        while above and above not in used:
            above = parents.get(above, 0)
        if above:
            used[above] += _own_bytes(f"{proc}/{process}/statm")
    return used


def _parent(path: str) -> int | None:
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:  # it ended meanwhile
        return None
    # pid (name) state parent …; the name may hold anything, parentheses too.
    return int(text.rpartition(")")[2].split()[1])


def _own_bytes(path: str) -> int:
    try:
        _, resident, shared, *_ = Path(path).read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE
