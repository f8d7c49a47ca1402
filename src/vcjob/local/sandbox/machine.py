"""What of this machine containers get to see, read once when a run starts."""

import os
import stat
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Self

import msgspec

from vcjob.local.sandbox.python import Python, read_python

_PROGRAMS = ("/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu")
_PROC_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")

# Hidden whatever their permissions say. Everything in /etc that not every user of the machine may
# read is hidden too; on a well-kept machine that alone covers these.
_SECRET = (
    *("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/security/opasswd"),
    *("/etc/ssh/*_key", "/etc/ssl/private", "/etc/pki/*/private", "/etc/wireguard"),
    *("*.key", "*.keytab", "/etc/NetworkManager/system-connections"),
)
_STATIC_SHELLS = (("/usr/bin/dash", "/bin/dash"), ("/usr/bin/busybox", "/bin/busybox"))


class Entry(msgspec.Struct, frozen=True):
    """A directory's entry: a directory, a symbolic link with its target, or something else."""

    name: str
    directory: bool = False
    link: str = ""


ListDirectory = Callable[[str], tuple[Entry, ...] | None]
"""The entries of a directory of this machine; None where it is none that we may read."""


def list_directory(path: str) -> tuple[Entry, ...] | None:
    """List a directory of this machine without following its last component."""
    try:
        with os.scandir(path) as found:
            return tuple(
                sorted(
                    (
                        Entry(
                            entry.name,
                            entry.is_dir(follow_symlinks=False),
                            os.readlink(entry.path) if entry.is_symlink() else "",
                        )
                        for entry in found
                    ),
                    key=lambda entry: entry.name,
                )
            )
    except OSError:
        return None


class Machine(msgspec.Struct, frozen=True):
    """Facts of this machine that the sandbox depends on.

    ``programs`` are the directories with programs, ``links`` top-level symbolic links such as
    ``/bin``. ``hidden_directories`` and ``hidden_files`` lie in /etc, ``proc_read_only`` in
    /proc. ``shell`` takes the place of ``sh``, "" where the machine's own stays.
    """

    programs: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    python: Python
    hidden_directories: tuple[str, ...] = ()
    hidden_files: tuple[str, ...] = ()
    proc_read_only: tuple[str, ...] = ()
    shell: str = ""
    warnings: tuple[str, ...] = ()
    list: ListDirectory = list_directory

    @classmethod
    def read(cls, python: str, home: str = "") -> Self:
        """Read this machine; ``python`` as ``find_python`` gives it. Raises PythonNotFound."""
        directories, files = _hidden_in_etc()
        shell, warnings = _choose_shell()
        return cls(
            programs=tuple(p for p in _PROGRAMS if os.path.isdir(p) and not os.path.islink(p)),
            links=tuple((p, os.readlink(p)) for p in _PROGRAMS if os.path.islink(p)),
            python=read_python(python, home or str(Path.home())),
            hidden_directories=directories,
            hidden_files=files,
            proc_read_only=tuple(p for p in _PROC_READ_ONLY if os.path.exists(p)),
            shell=shell,
            warnings=warnings,
            list=cache(list_directory),  # one look for the whole run, as at everything else
        )


def _choose_shell() -> tuple[str, tuple[str, ...]]:
    """What ``sh`` is in containers.

    Manifests rely on an sh without brace expansion, as in the images they name: in the svc guide's
    recipe, bash would tear ``{"cluster":…,…}`` apart at its commas.
    """
    if os.path.basename(os.path.realpath("/bin/sh")) != "bash":
        return "", ()
    for candidates in _STATIC_SHELLS:
        for candidate in candidates:
            if os.access(candidate, os.X_OK):
                return candidate, ()
    return "", (
        "sh is bash on this machine, which expands braces: scripts that write {a,b} unquoted "
        "behave differently from most images; install dash or busybox and vcjob uses it",
    )


def _hidden_in_etc() -> tuple[tuple[str, ...], tuple[str, ...]]:
    directories: list[str] = []
    files: list[str] = []
    for path, is_directory in _secrets("/etc"):
        (directories if is_directory else files).append(path)
    return tuple(directories), tuple(files)


def _secrets(directory: str) -> Iterator[tuple[str, bool]]:
    """What not everybody may read below a directory, or what is secret by its name."""
    try:
        found = list(os.scandir(directory))
    except OSError:
        return
    for entry in found:
        if entry.is_symlink():
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        is_directory = stat.S_ISDIR(mode)
        needed = stat.S_IROTH | (stat.S_IXOTH if is_directory else 0)
        if mode & needed != needed or any(fnmatch(entry.path, p) for p in _SECRET):
            # What the kernel refuses us anyway needs no hiding; each mount costs 0.1 ms a start.
            if os.access(entry.path, os.X_OK if is_directory else os.R_OK):
                yield entry.path, is_directory
        elif is_directory:
            yield from _secrets(entry.path)
