"""What in /etc no container may read.

A container started by root keeps root's number, and root reads everything that is not covered.
"""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatch

import msgspec

# Hidden whatever their permissions say. Everything in /etc that not every user of the machine may
# read is hidden too; on a well-kept machine that alone covers these.
_SECRET = (
    *("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/security/opasswd"),
    *("/etc/ssh/*_key", "/etc/ssl/private", "/etc/pki/*/private", "/etc/wireguard"),
    *("*.key", "*.keytab", "/etc/NetworkManager/system-connections"),
)


class Secret(msgspec.Struct, frozen=True):
    """A file or directory that containers must not see into."""

    path: str
    directory: bool


def find_secrets(directory: str) -> Iterator[Secret]:
    """What not everybody may read below a directory, or what is secret by its name.

    What the kernel refuses to this process anyway is not among them.
    """
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
            if os.access(entry.path, os.X_OK if is_directory else os.R_OK):
                yield Secret(entry.path, is_directory)
        elif is_directory:
            yield from find_secrets(entry.path)
