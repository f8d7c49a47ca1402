"""Which user and group numbers of this machine the pods' world gets, and writing them down.

A user namespace sees numbers through a map (user_namespaces(7)). Started by root, pods keep root's
numbers, so that files in ``-v`` directories have the owners a user expects; the user namespace
alone takes their power over the machine away. Started by an ordinary user, number 0 is the user;
with ``newuidmap`` and ranges in /etc/subuid and /etc/subgid the other numbers exist too.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import msgspec

from vcjob.api.errors import VcjobError

# systemd sets 524288-1879048191 aside for containers; its last 65536 numbers are the ones that
# its own nspawn, which picks from the start by a hash of the name, is least likely to use.
UNPRIVILEGED_BASE = 1879048192 - 65536
UNPRIVILEGED_COUNT = 65536


class IdRange(msgspec.Struct, frozen=True):
    """``count`` numbers from ``inside`` in the pods' world are those from ``outside`` here."""

    inside: int
    outside: int
    count: int


class IdMaps(msgspec.Struct, frozen=True):
    """The user and group maps of the pods' world; ``helper``: written by newuidmap, newgidmap."""

    users: tuple[IdRange, ...]
    groups: tuple[IdRange, ...]
    helper: bool = False

    def has_user(self, number: int) -> bool:
        """Whether a container can run as this user number."""
        return _contains(self.users, number)

    def has_group(self, number: int) -> bool:
        """Whether a container can have this group number."""
        return _contains(self.groups, number)


class IdMapRefused(VcjobError):
    """The kernel or newuidmap refused the map."""


def _contains(ranges: tuple[IdRange, ...], number: int) -> bool:
    return any(r.inside <= number < r.inside + r.count for r in ranges)


def outside(ranges: tuple[IdRange, ...], number: int) -> int | None:
    """The machine's number for one of the pods' world, None where it has none."""
    for r in ranges:
        if r.inside <= number < r.inside + r.count:
            return r.outside + number - r.inside
    return None


def parse_map(text: str) -> tuple[IdRange, ...]:
    """Read /proc/PID/uid_map (or gid_map) of this process's own namespace."""
    return tuple(IdRange(*map(int, line.split())) for line in text.splitlines())


def parse_subordinate(text: str, user: str, number: int) -> tuple[tuple[int, int], ...]:
    """The (first, count) ranges that /etc/subuid gives a user, by name or by number."""
    found = []
    for line in text.splitlines():
        owner, _, rest = line.strip().partition(":")
        first, _, count = rest.partition(":")
        if owner in (user, str(number)) and first.isdigit() and count.isdigit():
            found.append((int(first), int(count)))
    return tuple(found)


def choose_maps(*, move_root: bool = False) -> IdMaps:
    """Choose the maps for the user that runs vcjob.

    ``move_root`` (``--map-users``): as root, give pods unprivileged numbers instead of root's own.
    """
    user, group = os.geteuid(), os.getegid()
    if user == 0 and move_root:
        moved = (IdRange(0, UNPRIVILEGED_BASE, UNPRIVILEGED_COUNT),)
        return IdMaps(moved, moved)
    if user == 0:
        return IdMaps(
            _kept(Path("/proc/self/uid_map").read_text()),
            _kept(Path("/proc/self/gid_map").read_text()),
        )
    single = IdMaps((IdRange(0, user, 1),), (IdRange(0, group, 1),))
    if not (shutil.which("newuidmap") and shutil.which("newgidmap")) or _no_new_privileges():
        return single
    name = _user_name(user)
    users = parse_subordinate(_read("/etc/subuid"), name, user)
    groups = parse_subordinate(_read("/etc/subgid"), name, user)
    if not (users and groups):
        return single
    return IdMaps(_followed(user, users), _followed(group, groups), helper=True)


def write_maps(process: int, maps: IdMaps) -> None:
    """Write the maps of a process that has just made its user namespace; raises IdMapRefused.

    Must run outside the new namespace. An ordinary user may write a map of one number only after
    giving up setgroups(2) (user_namespaces(7)).
    """
    if maps.helper:
        for command, ranges in (("newuidmap", maps.users), ("newgidmap", maps.groups)):
            numbers = [str(n) for r in ranges for n in (r.inside, r.outside, r.count)]
            done = subprocess.run(
                [command, str(process), *numbers], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise IdMapRefused(f"{command} refused: {done.stderr.strip()}")
        return
    try:
        if os.geteuid() != 0:
            Path(f"/proc/{process}/setgroups").write_text("deny")
        Path(f"/proc/{process}/uid_map").write_text(_format(maps.users))
        Path(f"/proc/{process}/gid_map").write_text(_format(maps.groups))
    except OSError as error:
        raise IdMapRefused(f"writing {error.filename}: {error.strerror}") from error


def _kept(own_map: str) -> tuple[IdRange, ...]:
    """Every number this process itself can name, unchanged."""
    return tuple(IdRange(r.inside, r.inside, r.count) for r in parse_map(own_map))


def _followed(own: int, subordinate: tuple[tuple[int, int], ...]) -> tuple[IdRange, ...]:
    """The user itself as 0, its subordinate numbers from 1 on."""
    ranges = [IdRange(0, own, 1)]
    for first, count in subordinate:
        ranges.append(IdRange(ranges[-1].inside + ranges[-1].count, first, count))
    return tuple(ranges)


def _format(ranges: tuple[IdRange, ...]) -> str:
    return "".join(f"{r.inside} {r.outside} {r.count}\n" for r in ranges)


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _no_new_privileges() -> bool:
    """Whether set-uid programs, as newuidmap is, gain nothing here (prctl(2))."""
    return "\nNoNewPrivs:\t1\n" in _read("/proc/self/status")


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
