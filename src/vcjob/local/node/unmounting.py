"""Unmounting what the node put below a pod's directory, so that the directory can go."""

import os
from pathlib import Path

from vcjob.local.node import syscalls


def unmount_below(directory: str) -> None:
    """Unmount everything below a directory; raises OSError."""
    for target in mounts_below(directory, Path("/proc/self/mountinfo").read_bytes()):
        syscalls.unmount(target, syscalls.MNT_DETACH)


def mounts_below(directory: str, mountinfo: bytes) -> list[str]:
    """Places below a directory where something is mounted, innermost first.

    ``mountinfo`` is the text of that file. Source: proc_pid_mountinfo(5).
    """
    prefix = os.fsencode(directory.rstrip("/") + "/")
    lines = mountinfo.rstrip(b"\n").split(b"\n")  # a name may hold any other line end
    targets = [_unescape(line.split(b" ")[4]) for line in lines]
    below = (target for target in targets if target.startswith(prefix))
    return [os.fsdecode(target) for target in sorted(below, key=len, reverse=True)]


def _unescape(path: bytes) -> bytes:
    """Undo the octal escapes of blank, tab, newline and backslash."""
    for escape, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        path = path.replace(escape, char)
    return path
