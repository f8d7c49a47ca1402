"""hostPath volumes: only below directories that the user allowed, and of the type asked for.

Source: Kubernetes documentation, "Volumes", hostPath types.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.paths import (
    make_directories_below,
    make_file_below,
    open_below,
)
from vcjob.local.volumes.objects import VolumeRefused
from vcjob.local.volumes.plan import HostPath


class Allowed(msgspec.Struct, frozen=True):
    """A directory of this machine that hostPath volumes may reach below; links resolved."""

    directory: str
    read_only: bool = False


class HostPlace(msgspec.Struct, frozen=True):
    """Where a hostPath is: ``relative`` below ``base``, to be opened so that no link leads out."""

    base: str
    relative: str
    read_only: bool = False


_TYPES: Mapping[str, tuple[str, Callable[[int], bool]]] = {
    "Directory": ("a directory", stat.S_ISDIR),
    "DirectoryOrCreate": ("a directory", stat.S_ISDIR),
    "File": ("a file", stat.S_ISREG),
    "FileOrCreate": ("a file", stat.S_ISREG),
    "Socket": ("a socket", stat.S_ISSOCK),
}


def allowed_directories(
    host_paths: Iterable[str], binds: Sequence[BindMount]
) -> tuple[Allowed, ...]:
    """Directories that hostPath volumes may reach below: both kinds, links resolved."""
    return (
        *(Allowed(os.path.realpath(path)) for path in host_paths),
        *(
            Allowed(os.path.realpath(bind.source), bind.read_only)
            for bind in binds
            if not bind.file
        ),
    )


def find_host_path(volume: HostPath, allowed: Sequence[Allowed]) -> HostPlace:
    """Which allowed directory a hostPath lies below. Raises VolumeRefused where none."""
    path = os.path.normpath(volume.path)
    if not path.startswith("/") or ".." in volume.path.split("/") or "\0" in path:
        raise VolumeRefused(f"hostPath {volume.path!r} must be absolute and without '..'")
    # By its name first; a name that goes through links of this machine is followed once. What
    # counts is the opening, which stays below the directory whatever becomes of the links.
    for candidate in (path, os.path.realpath(path)):
        for place in sorted(allowed, key=lambda place: -len(place.directory)):
            base = place.directory.rstrip("/")
            if candidate == base or candidate.startswith(f"{base}/"):
                relative = candidate[len(base) :].strip("/")
                return HostPlace(place.directory, relative, place.read_only)
    raise VolumeRefused(
        f"hostPath {volume.path} is not shown to pods: allow it with --allow-host-path "
        f"{volume.path}, or show a directory in its place with -v SRC:DST"
    )


def check_host_path(volume: HostPath, allowed: Sequence[Allowed]) -> None:
    """Raise VolumeRefused where a pod could not have it as things are now; makes nothing."""
    place = find_host_path(volume, allowed)
    if not volume.type.endswith("OrCreate"):
        open_host_path(volume, place)


def open_host_path(volume: HostPath, place: HostPlace) -> None:
    """Make what an ``…OrCreate`` type wants, and check the type.

    Raises VolumeRefused, UnsafePath.
    """
    if volume.type in ("CharDevice", "BlockDevice"):
        raise VolumeRefused(
            f"hostPath {volume.path}: devices of this machine are not given to pods"
        )
    if volume.type and volume.type not in _TYPES:
        raise VolumeRefused(
            f"hostPath {volume.path}: there is no type {volume.type!r}, only {', '.join(_TYPES)}"
        )
    try:
        if volume.type == "DirectoryOrCreate":
            make_directories_below(place.base, place.relative)
        elif volume.type == "FileOrCreate" and not _mode(place):
            make_file_below(place.base, place.relative)
        mode = _mode(place)
    except OSError as error:
        raise VolumeRefused(f"hostPath {volume.path}: {error.strerror}") from error
    if not mode:
        raise VolumeRefused(f"hostPath {volume.path} does not exist on this machine")
    if volume.type and not _TYPES[volume.type][1](mode):
        raise VolumeRefused(f"hostPath {volume.path} is not {_TYPES[volume.type][0]}")


def _mode(place: HostPlace) -> int:
    """The type and permission bits, 0 where nothing is there."""
    try:
        fd = open_below(place.base, place.relative)
    except FileNotFoundError:
        return 0
    try:
        return os.fstat(fd).st_mode
    finally:
        os.close(fd)
