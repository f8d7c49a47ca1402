"""What of this machine containers get to see, read once when a run starts."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Self

import msgspec

from vcjob.local.sandbox.python import Python, read_python

_PROGRAMS = ("/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu")
_PROC_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
_PROC_HIDDEN = ("/proc/keys", "/proc/key-users")

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
    ``/bin``. ``etc`` is the node's copy of /etc (``node/etc_copy.py``); ``proc_read_only`` and
    ``proc_hidden`` lie in /proc.
    ``shell`` takes the place of ``sh``, "" where the machine's own stays.
    """

    programs: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    python: Python
    etc: str = "/etc"
    proc_read_only: tuple[str, ...] = ()
    proc_hidden: tuple[str, ...] = ()
    shell: str = ""
    warnings: tuple[str, ...] = ()
    list: ListDirectory = list_directory

    @classmethod
    def read(cls, python: str, etc: str, home: str = "") -> Self:
        """Read this machine; ``python`` as ``find_python`` gives it. Raises PythonNotFound."""
        shell, warnings = _choose_shell()
        return cls(
            programs=tuple(p for p in _PROGRAMS if os.path.isdir(p) and not os.path.islink(p)),
            links=tuple((p, os.readlink(p)) for p in _PROGRAMS if os.path.islink(p)),
            python=read_python(python, home or str(Path.home())),
            etc=etc,
            proc_read_only=tuple(p for p in _PROC_READ_ONLY if os.path.exists(p)),
            proc_hidden=tuple(p for p in _PROC_HIDDEN if os.path.exists(p)),
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
