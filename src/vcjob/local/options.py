"""What a user lets pods have of this machine."""

from pathlib import Path

import msgspec


class EngineOptions(msgspec.Struct, frozen=True):
    """What a user lets pods have of this machine.

    ``binds`` are (source, target, read only); ``python`` is an interpreter or an environment's
    directory, "" for the default; hostPath volumes may reach below ``host_paths``; ``keep``
    leaves the pods' files after the run. ``map_users`` gives the pods of root unprivileged numbers.
    """

    binds: tuple[tuple[Path, str, bool], ...] = ()
    python: str = ""
    host_paths: tuple[Path, ...] = ()
    keep: bool = False
    map_users: bool = False
