"""What a node process is started with."""

import msgspec

NODE_LOG = "node.log"
"""What the node process says that nobody expected, in its directory."""


class NodeOptions(msgspec.Struct, frozen=True):
    """How to make the pods' world.

    ``directory`` is a private directory (0700) of this run that exists; the node mounts its own
    files there, visible to nobody else. ``move_root`` (``--map-users``): started as root, give
    pods unprivileged user numbers instead of root's; ``passages`` are places that they get to
    although they may lie below directories that only root may enter.
    """

    directory: str
    move_root: bool = False
    passages: tuple[str, ...] = ()
