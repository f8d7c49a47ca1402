"""Programs of this machine that containers are started by, kept from being written by them.

Whatever runs in a container can be made to execute the program that started it (a script of
``#!/proc/self/exe``), and open that file through /proc/PID/exe: by the mount it was executed from.
As root, and where vcjob is installed by its user, its owner's number is the container's too.
"""

import os
import sys
from functools import cache

from vcjob.local.node import syscalls


def protect(path: str) -> None:
    """Cover a file of this machine with itself, read-only, in the node's own mounts.

    What is executed from there can be opened for writing by nobody through /proc/PID/exe.
    """
    syscalls.mount(path, path, None, syscalls.MS_BIND)
    kept = os.statvfs(path).f_flag & (
        os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME
    )
    if os.statvfs(path).f_flag & os.ST_RELATIME:
        kept |= syscalls.MS_RELATIME
    flags = syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY | kept
    syscalls.mount("", path, None, flags)


def run_beside(module: str, descriptor: int) -> None:
    """Start a process that runs ``main(descriptor)`` of a module, with little else in its memory.

    Its Python is executed from a read-only mount. Not by posix_spawn: the C library's leaves two
    signals ignored in all that follows.
    """
    _protect_python()
    os.set_inheritable(descriptor, True)
    work = f"import sys; sys.path[:] = sys.argv[2:]; from {module} import main; main({descriptor})"
    arguments = [sys.executable, "-B", "-S", "-s", "-P", "-c", work, "", *sys.path]
    child = os.fork()
    if child == 0:
        try:
            os.execve(sys.executable, arguments, {})
        finally:
            os._exit(127)


@cache
def _protect_python() -> None:
    protect(os.path.realpath(sys.executable))
