"""Ways for a moved root (``--map-users``) to what lies below directories that only root may enter.

Root's home is closed to everybody else, and below it may lie the state directory, vcjob itself, the
user's Python and directories of ``-v``. Pods whose root has an unprivileged number would see none
of them. Each closed directory is covered by an empty one, seen by the pods' world alone, in which
only the wanted places appear, as they are; what the moved root may do there their own modes say.
"""

import os
import stat
from collections.abc import Iterable, Mapping

from vcjob.local.node import syscalls


def open_passages(wanted: Iterable[str]) -> None:
    """Make the paths ``wanted`` reachable by everybody, in a new mount namespace of this process.

    Must run as root, before the user namespace is made. Raises OSError.
    """
    closed = closed_directories(wanted)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    for directory, places in closed.items():
        _cover(directory, places)


def closed_directories(wanted: Iterable[str]) -> Mapping[str, list[str]]:
    """The topmost directories that others may not enter, with the wanted places below each.

    A place that lies below another wanted one comes with it. Links are followed.
    """
    closed: dict[str, list[str]] = {}
    for place in sorted({os.path.realpath(path) for path in wanted if os.path.exists(path)}):
        ancestors = [place[:end] for end in range(1, len(place)) if place[end] == "/"]
        blocked = next((a for a in ancestors if not _open_to_others(a)), None)
        if blocked is None:
            continue
        places = closed.setdefault(blocked, [])
        if not any(place.startswith(f"{other}/") for other in places):
            places.append(place)
    return closed


def _open_to_others(directory: str) -> bool:
    return bool(os.stat(directory).st_mode & stat.S_IXOTH)


def _cover(directory: str, places: list[str]) -> None:
    """Mount an empty directory that all may pass, and in it the places as they were."""
    opened = [(place, os.open(place, os.O_PATH | os.O_CLOEXEC)) for place in places]
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("tmpfs", directory, "tmpfs", flags, "mode=0711,size=1m")
    for place, fd in opened:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            _make_directories(place)
        else:
            _make_directories(os.path.dirname(place))
            os.close(os.open(place, os.O_CREAT | os.O_CLOEXEC, 0o600))
        source = f"/proc/self/fd/{fd}"
        syscalls.mount(source, place, None, syscalls.MS_BIND | syscalls.MS_REC)
        os.close(fd)


def _make_directories(path: str) -> None:
    made = ""
    for part in path.strip("/").split("/"):
        made = f"{made}/{part}"
        if not os.path.isdir(made):
            os.mkdir(made)
            os.chmod(made, 0o711)
