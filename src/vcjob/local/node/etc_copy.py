"""The machine's /etc without its secrets, copied once into memory: the lower layer of every pod's.

A copy, and not the directory itself with the secrets covered: a directory with mounts below it
cannot be a layer for an ordinary user, in a copy there is no secret that is written later, and a
dozen mounts in each container would be a fifth of what its start costs (bubblewrap reads the list
of all mounts for every one it makes). Usually it is some MB.
"""

import contextlib
import os
import shutil
import stat
import subprocess
from fnmatch import fnmatch
from pathlib import Path

from vcjob.local.node import syscalls

# Secret whatever their permissions say. Everything in /etc that not every user of the machine may
# read is secret too: a container started by root keeps root's number, and root reads all it sees.
_SECRET = (
    *("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/security/opasswd"),
    *("/etc/ssh/*_key", "/etc/ssl/private", "/etc/pki/*/private", "/etc/wireguard"),
    *("*.key", "*.keytab", "/etc/NetworkManager/system-connections"),
)

# Every pod has its own; a link to this machine's would lead nowhere.
_OF_PODS = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/nsswitch.conf")


def etc_copy(directory: str) -> str:
    """Where the copy is, for a node with this directory (``NodeOptions.directory``)."""
    return os.path.join(directory, "etc")


def make_etc_copy(directory: str) -> None:
    """Copy /etc below the node's directory, where only the pods' world sees it; raises OSError."""
    copy = etc_copy(directory)
    copy_public("/etc", copy)
    _make_shadow(copy)
    _make_host_key(os.path.join(copy, "ssh"))


def try_layers(directory: str) -> None:
    """Put a layer over the copy as containers do, to see that the kernel can; raises OSError."""
    places = {name: os.path.join(directory, name) for name in ("layer", "upper", "work")}
    for place in places.values():
        os.mkdir(place)
    options = f"lowerdir={etc_copy(directory)},upperdir={places['upper']},workdir={places['work']}"
    syscalls.mount("overlay", places["layer"], "overlay", 0, f"{options},userxattr")
    syscalls.unmount(places["layer"])


def is_secret(path: str, mode: int) -> bool:
    """Whether not everybody may read a file or enter a directory, or its name says secret.

    ``mode`` is its ``st_mode``.
    """
    needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & needed != needed or any(fnmatch(path, pattern) for pattern in _SECRET)


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
        if entry.path in _OF_PODS:
            continue
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


def _make_shadow(directory: str) -> None:
    """A shadow file in which nobody has a password: PAM lets no one in without an entry there."""
    try:
        accounts = Path(directory, "passwd").read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return
    names = [name for name, colon, _ in (line.partition(":") for line in accounts) if colon]
    shadow = Path(directory, "shadow")
    shadow.write_text(
        "".join(f"{name}:*:1:0:99999:7:::\n" for name in names), errors="surrogateescape"
    )
    shadow.chmod(0o600)


def _make_host_key(directory: str) -> None:
    """Give ssh servers in pods a host key, as they have in images: this machine's are secret."""
    program = shutil.which("ssh-keygen")
    if program is None or not os.path.exists(os.path.join(directory, "sshd_config")):
        return
    key = os.path.join(directory, "ssh_host_ed25519_key")
    with contextlib.suppress(FileNotFoundError):  # the machine's own, whose private part is secret
        os.unlink(f"{key}.pub")
    command = [program, "-q", "-t", "ed25519", "-N", "", "-C", "pods", "-f", key]
    # Should it fail, node.log has its words, and an ssh server in a pod says what it lacks.
    subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
