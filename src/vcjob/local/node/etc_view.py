"""The machine's /etc without its secrets, copied once into memory and shown to every container.

A copy, and not the directory itself with the secrets covered: a dozen mounts in each container
would be a fifth of what its start costs (bubblewrap reads the list of all mounts for every one it
makes), and a copy has no secret that is written later. Usually it is some MB.
"""

import contextlib
import os
import shutil
import stat

from vcjob.local.sandbox.etc_secrets import is_secret


def etc_view(directory: str) -> str:
    """Where the copy is, for a node with this directory (``NodeOptions.directory``)."""
    return os.path.join(directory, "etc")


def make_etc_view(directory: str) -> None:
    """Copy /etc below the node's directory, where only the pods' world sees it; raises OSError."""
    copy_public("/etc", etc_view(directory))


def copy_public(source: str, target: str) -> None:
    """Copy a directory with owners and modes but without what is secret or cannot be read.

    Owners that this user namespace has no number for become the copying process.
    """
    try:
        found = list(os.scandir(source))
    except PermissionError:
        found = []
    os.mkdir(target, 0o700)
    for entry in found:
        copy = os.path.join(target, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), copy)
            continue
        status = entry.stat(follow_symlinks=False)
        if is_secret(entry.path, status.st_mode):
            continue
        if stat.S_ISDIR(status.st_mode):
            copy_public(entry.path, copy)
        elif stat.S_ISREG(status.st_mode):
            _copy_file(entry.path, copy, status)
    _take_over(target, os.stat(source))


def _copy_file(source: str, target: str, status: os.stat_result) -> None:
    try:
        shutil.copyfile(source, target, follow_symlinks=False)
    except (PermissionError, FileNotFoundError):  # not ours to read, or gone since
        return
    _take_over(target, status)


def _take_over(target: str, status: os.stat_result) -> None:
    with contextlib.suppress(OSError):  # the number does not exist in this user namespace
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, stat.S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
