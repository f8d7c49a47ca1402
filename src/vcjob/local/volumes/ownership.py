"""Who owns what in volumes: fsGroup and the number that is root inside, as far as they exist.

Only root may give files away. Started by an ordinary user, files stay the user's (root inside), and
what fsGroup would let the pod's group do is allowed to all: only the pod's containers, which all
are in that group, can reach the directories, for those above them are the user's alone.
"""

import os
import stat

import msgspec

from vcjob.api.types import Object
from vcjob.local.node.identity import IdMaps, outside


class Ownership(msgspec.Struct, frozen=True):
    """Numbers of this machine for new files, -1 where they stay as they are made.

    ``shared``: the pod has an fsGroup. ``alone``: the pod's world has one user only.
    """

    user: int = -1
    group: int = -1
    shared: bool = False
    alone: bool = False

    def mode(self, mode: int, *, secret: bool = False) -> int:
        """Permission bits of a file that the pod only reads, with what fsGroup adds.

        A Secret's file is its owner's alone where there is nobody else: that changes nobody's
        rights, and ssh takes no key of its own user that others may read.
        """
        if secret and self.alone:
            return mode & 0o700
        if not self.shared:
            return mode
        return mode | (0o440 if self.group >= 0 else 0o444)


def ownership(pod: Object, maps: IdMaps, privileged: bool) -> Ownership:
    """What a pod's files get; ``privileged``: this process may give files away."""
    context: Object = (pod.get("spec") or {}).get("securityContext") or {}
    wanted = context.get("fsGroup")
    if not privileged:
        alone = sum(r.count for r in maps.users) == 1
        return Ownership(shared=wanted is not None, alone=alone)
    group = outside(maps.groups, int(wanted or 0))
    return Ownership(
        user=_number(outside(maps.users, 0)),
        group=_number(group if group is not None else outside(maps.groups, 0)),
        shared=wanted is not None and group is not None,
    )


def make_directories(path: str, owner: Ownership) -> None:
    """Make a directory and those above it that are missing, for the root of the pods' world.

    Nobody but that user, who may have an unprivileged number, and root get below them.
    """
    if os.path.isdir(path):
        return
    make_directories(os.path.dirname(path), owner)
    os.mkdir(path, 0o700)
    os.chown(path, owner.user, owner.group)


def make_writable(directory: str, owner: Ownership) -> None:
    """Open a volume's own directory to all of the pod's users; with fsGroup, new files get it."""
    os.chown(directory, owner.user, owner.group)
    os.chmod(directory, 0o2777 if owner.shared and owner.group >= 0 else 0o777)


def give_to_group(directory: str, owner: Ownership) -> None:
    """Give all that is in a volume to fsGroup, unless the directory has it; follows no link."""
    if not owner.shared or owner.group < 0 or os.stat(directory).st_gid == owner.group:
        return
    for _, folders, names, folder in os.fwalk(directory, follow_symlinks=False):
        for name in (*folders, *names):
            handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                mode = os.fstat(handle).st_mode
                if stat.S_ISLNK(mode):
                    continue
                path = f"/proc/self/fd/{handle}"
                os.chown(path, -1, owner.group)
                added = 0o2770 if stat.S_ISDIR(mode) else 0o660
                os.chmod(path, stat.S_IMODE(mode) | added)
            finally:
                os.close(handle)


def _number(found: int | None) -> int:
    return -1 if found is None else found
