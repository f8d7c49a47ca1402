"""Memory and process limits kept by the kernel, where we may make control groups.

That is: when root started vcjob. One group a run, ``vcjob-<keeper's pid>``, below the root of the
hierarchy (a group that has processes may not hand out controllers in version 2), and one below it
for each container. The keeper takes them away at the end; those of a run whose keeper was killed
go when the next run starts.
"""

import contextlib
import os
from pathlib import Path
from typing import Self

import msgspec

_MOUNT = "/sys/fs/cgroup"
_PREFIX = "vcjob-"
_CONTROLLERS = ("memory", "pids")


class ContainerGroup(msgspec.Struct, frozen=True):
    """The groups of one container: one in version 2, one a controller in version 1."""

    paths: tuple[str, ...]

    def open_for_joining(self) -> list[int]:
        """Descriptors; a process that writes ``0`` to each of them joins."""
        return [os.open(f"{p}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for p in self.paths]

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in here for lack of memory."""
        for path in self.paths:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    for line in Path(path, name).read_text().splitlines():
                        key, _, value = line.partition(" ")
                        if key == "oom_kill" and int(value) > 0:
                            return True
        return False

    def remove(self) -> None:
        """Take the groups away; one that is still in use is left to the keeper."""
        for path in self.paths:
            with contextlib.suppress(OSError):
                os.rmdir(path)


class ControlGroups(msgspec.Struct, frozen=True):
    """The groups of one run; ``version`` is that of the hierarchy."""

    version: int
    paths: tuple[str, ...]

    @classmethod
    def make(cls, owner: int, mount: str = _MOUNT) -> Self | None:
        """Make the groups of the run whose keeper is ``owner``; None where we may not."""
        if os.geteuid() != 0:
            return None
        version = 2 if os.path.exists(f"{mount}/cgroup.controllers") else 1
        hierarchies = [mount] if version == 2 else [f"{mount}/{c}" for c in _CONTROLLERS]
        for hierarchy in hierarchies:
            _remove_stale(hierarchy)
        groups = cls(version, tuple(f"{h}/{_PREFIX}{owner}" for h in hierarchies))
        try:
            for path in groups.paths:
                os.mkdir(path)
                if version == 2:
                    Path(path, "cgroup.subtree_control").write_text("+memory +pids")
        except OSError:
            groups.remove()
            return None
        return groups

    def add(self, number: int, memory_limit: int, process_limit: int) -> ContainerGroup:
        """A group for one container with its limits (0: none); raises OSError."""
        group = ContainerGroup(tuple(f"{path}/{number}" for path in self.paths))
        memory = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        swap = "memory.swap.max" if self.version == 2 else "memory.memsw.limit_in_bytes"
        for path in group.paths:
            os.mkdir(path)
        for name, limit in ((memory, memory_limit), ("pids.max", process_limit)):
            if limit:
                self._write(group, name, str(limit))
        if memory_limit:
            # A kernel without accounting of swap has no such file.
            with contextlib.suppress(FileNotFoundError):
                self._write(group, swap, "0" if self.version == 2 else str(memory_limit))
        return group

    def remove(self) -> None:
        """Take all groups of the run away, once nothing runs in them."""
        for path in self.paths:
            _remove_group(path)

    def _write(self, group: ContainerGroup, name: str, value: str) -> None:
        position = 0 if self.version == 2 else _CONTROLLERS.index(name.partition(".")[0])
        with open(f"{group.paths[position]}/{name}", "r+") as file:
            file.write(value)


def _remove_stale(hierarchy: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(hierarchy):
            owner = name.removeprefix(_PREFIX)
            if name != owner and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
                _remove_group(f"{hierarchy}/{name}")


def _remove_group(path: str) -> None:
    with contextlib.suppress(OSError):
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                os.rmdir(entry.path)
        os.rmdir(path)
