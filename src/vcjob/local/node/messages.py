"""What the engine asks of the node process, and what it answers: one frozen type a message.

The engine (in the user's own namespaces: store, controller, scheduler, agent) talks to the node
process (pid 1 of the pods' world: user, network, mount, pid and ipc namespaces) over one
socket pair. Decisions about pods stay in the agent; the node only carries out.
"""

import msgspec


class AddPod(msgspec.Struct, frozen=True, tag=True):
    """Make a pod's network namespace: interface ``eth0`` with ``address``, routes, neighbours.

    ``group`` is the number of the interface group, one per Job, that network policy speaks of.
    """

    uid: str
    address: str
    group: int


class RemovePod(msgspec.Struct, frozen=True, tag=True):
    """Kill what still runs in a pod, release its namespace, and remove its ``directories``."""

    uid: str
    directories: tuple[str, ...] = ()


class StartContainer(msgspec.Struct, frozen=True, tag=True):
    """Start one container of a pod: ``argv`` is the sandbox's, complete, run in the pod's netns.

    Three file descriptors travel with the message: standard input, output and error. ``arguments``
    are further sandbox arguments that must not show in ``ps`` (environment); the node hands them
    over by ``--args FD``.
    """

    container: str
    pod: str
    argv: tuple[str, ...]
    arguments: tuple[str, ...] = ()


class SignalContainer(msgspec.Struct, frozen=True, tag=True):
    """Send ``signal`` to the first process of a container (SIGKILL: to its whole tree)."""

    container: str
    signal: int


class SetPolicy(msgspec.Struct, frozen=True, tag=True):
    """Replace the packet filter by a compiled one (see ``local/network/policy.py``)."""

    rules: bytes


class OpenSocket(msgspec.Struct, frozen=True, tag=True):
    """Make an unconnected TCP socket in the node's network namespace and send it back."""


class Mount(msgspec.Struct, frozen=True, tag=True):
    """Mount a tmpfs of ``size`` bytes (0: the kernel's default) at ``target`` (emptyDir Memory)."""

    target: str
    size: int = 0


Request = AddPod | RemovePod | StartContainer | SignalContainer | SetPolicy | OpenSocket | Mount


class Done(msgspec.Struct, frozen=True, tag=True):
    """A request was carried out; ``error`` is a sentence where it was not."""

    request: int
    error: str = ""
    pid: int = 0


class ContainerExited(msgspec.Struct, frozen=True, tag=True):
    """A container's first process ended: ``exit_code`` 0–255, or ``signal`` if that ended it."""

    container: str
    exit_code: int
    signal: int = 0
    out_of_memory: bool = False


Answer = Done | ContainerExited
