"""What in /etc no container may read.

A container started by root keeps root's number, and root reads everything that it can see.
"""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatch

# Secret whatever their permissions say. Everything in /etc that not every user of the machine may
# read is secret too; on a well-kept machine that alone covers these.
_SECRET = (
    *("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/security/opasswd"),
    *("/etc/ssh/*_key", "/etc/ssl/private", "/etc/pki/*/private", "/etc/wireguard"),
    *("*.key", "*.keytab", "/etc/NetworkManager/system-connections"),
)


def is_secret(path: str, mode: int) -> bool:
    """Whether not everybody may read a file or enter a directory, or its name says secret.

    ``mode`` is its ``st_mode``; symbolic links are no secrets, what they lead to may be.
    """
    needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & needed != needed or any(fnmatch(path, pattern) for pattern in _SECRET)


def find_secrets(directory: str) -> Iterator[str]:
    """The secrets below a directory; of a secret directory only itself."""
    try:
        found = list(os.scandir(directory))
    except OSError:
        return
    for entry in found:
        if entry.is_symlink():
            continue
        if is_secret(entry.path, entry.stat(follow_symlinks=False).st_mode):
            yield entry.path
        elif entry.is_dir(follow_symlinks=False):
            yield from find_secrets(entry.path)
