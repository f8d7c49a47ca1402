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


class BindBelow(msgspec.Struct, frozen=True, tag=True):
    """A bind mount of ``path`` below the directory ``base``, on ``target`` in the container.

    The node opens it when the container starts, so that no link below ``base`` leads out of it
    (a container that shares the volume could put one there at any time before).
    """

    base: str
    path: str
    target: str
    read_only: bool = False


class MakeBelow(msgspec.Struct, frozen=True, tag=True):
    """A directory (or empty file) to make below ``base`` first: a mount point inside a volume.

    Made by the node under the same rule as BindBelow; bubblewrap would follow links out.
    """

    base: str
    path: str
    file: bool = False


class WriteFile(msgspec.Struct, frozen=True, tag=True):
    """A file with ``text`` at ``target``, in the container's private root and its own to change."""

    target: str
    text: str


class StartContainer(msgspec.Struct, frozen=True, tag=True):
    """Start one container of a pod, in the pod's network namespace and a user namespace of its own.

    ``options`` are bubblewrap's (see ``local/sandbox/launcher.py``); the node hands them over by a
    descriptor, so that environment shows in no process list. ``command`` is the program with its
    arguments. Three descriptors travel with the message: standard input, output and error.

    ``user``, ``group`` and ``groups`` are numbers of the pods' world. ``process_limit`` bounds the
    container's processes and threads, ``memory_limit`` (bytes, 0: none) its memory.

    With ``terminal`` the first descriptor is a socket, over which the master of a terminal comes
    back (``terminals.py``) that the program gets for all three; the options must show it inside.
    """

    container: str
    pod: str
    options: tuple[str | BindBelow | MakeBelow | WriteFile, ...]
    command: tuple[str, ...]
    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    process_limit: int = 0
    memory_limit: int = 0
    terminal: bool = False


class SignalContainer(msgspec.Struct, frozen=True, tag=True):
    """Send ``signal`` to the first process of a container (SIGKILL: to its whole tree)."""

    container: str
    signal: int


class EnterContainer(msgspec.Struct, frozen=True, tag=True):
    """Start ``command`` inside a running container, with the rights of its first process.

    User, groups and limits are those the container was started with. Three descriptors travel with
    the message: standard input, output and error. With ``terminal`` the first is a socket, over
    which the master of a terminal comes back (``terminals.py``) that the program gets for all
    three. ``entry`` names the program in ``SignalEntry`` and ``EntryExited``. The request is held
    while the container is still being started.
    """

    container: str
    entry: int
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    directory: str = "/"
    terminal: bool = False


class SignalEntry(msgspec.Struct, frozen=True, tag=True):
    """Send ``signal`` to a program that entered a container (SIGKILL: to its process group)."""

    entry: int
    signal: int


class SetPolicy(msgspec.Struct, frozen=True, tag=True):
    """Change the packet filter by an update of ``local/network/policy.py``; each in its turn."""

    rules: bytes


class OpenSocket(msgspec.Struct, frozen=True, tag=True):
    """Make an unconnected TCP socket in the node's network namespace and send it back.

    With ``pod``, in that pod's namespace: it reaches what listens on the pod's 127.0.0.1 too.
    """

    pod: str = ""


class Mount(msgspec.Struct, frozen=True, tag=True):
    """Mount a tmpfs of ``size`` bytes (0: the kernel's default) at ``target`` (emptyDir Memory)."""

    target: str
    size: int = 0


Request = (
    AddPod
    | RemovePod
    | StartContainer
    | SignalContainer
    | EnterContainer
    | SignalEntry
    | SetPolicy
    | OpenSocket
    | Mount
)


class Call(msgspec.Struct, frozen=True):
    """One request on its way to the node, with the number that its answer repeats."""

    number: int
    request: Request


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The world stands. ``descriptors`` travel with it: the name server's end, when there is one.

    ``memory_groups``: memory limits are kept by the kernel, else by watching.
    """

    descriptors: int = 0
    memory_groups: bool = False


class StartFailed(msgspec.Struct, frozen=True, tag=True):
    """The world could not be made: the step (see ``probe.Step``), the error number and words."""

    step: str
    number: int
    words: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """A request was carried out; ``error`` is a sentence where it was not.

    ``descriptors``: how many travel with the answer.
    """

    request: int
    error: str = ""
    descriptors: int = 0


class ContainerExited(msgspec.Struct, frozen=True, tag=True):
    """A container ended: ``exit_code`` 0–255, 128 + the signal where one ended it.

    ``started`` is false when the sandbox or the program could not be started; what went wrong
    stands on the container's standard error.
    """

    container: str
    exit_code: int
    started: bool = True
    out_of_memory: bool = False


class EntryExited(msgspec.Struct, frozen=True, tag=True):
    """A program that entered a container ended: ``exit_code`` as in ContainerExited.

    ``error`` is a sentence where it could not be started (exit code 126, 127 or 128).
    """

    entry: int
    exit_code: int
    error: str = ""


Answer = Ready | StartFailed | Done | ContainerExited | EntryExited
