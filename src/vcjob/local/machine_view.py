"""What pods get to see and use of this machine, as far as it can be told before any starts."""

from typing import Self

import msgspec

from vcjob.local.node.identity import IdMaps, choose_maps
from vcjob.local.options import EngineOptions
from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.machine import Machine
from vcjob.local.sandbox.python import find_python
from vcjob.local.volumes.host_paths import Allowed, allowed_directories


class MachineView(msgspec.Struct, frozen=True):
    """This machine as pods find it.

    ``maps`` are the users and groups that they can run as, ``binds`` what the user shows to every
    pod, ``allowed`` where hostPath volumes may reach.
    """

    machine: Machine
    maps: IdMaps
    binds: tuple[BindMount, ...]
    allowed: tuple[Allowed, ...]

    @classmethod
    def of(cls, options: EngineOptions) -> Self:
        """What the pods of an engine with these options will find; raises PythonNotFound."""
        binds = bind_mounts(options)
        return cls(
            machine=Machine.read(find_python(options.python), "/etc"),
            maps=choose_maps(move_root=options.map_users),
            binds=binds,
            allowed=allowed_directories(map(str, options.host_paths), binds),
        )


def bind_mounts(options: EngineOptions) -> tuple[BindMount, ...]:
    """What the user shows to every pod."""
    return tuple(
        BindMount(str(source), target, read_only, file=source.is_file())
        for source, target, read_only in options.binds
    )
