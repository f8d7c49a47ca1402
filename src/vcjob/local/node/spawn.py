"""Starting a sandbox: the pod's network, a user namespace of its own, then bubblewrap.

The user namespace is made here and not by bubblewrap, which can map one number only. In it the
container has what capabilities the launcher leaves it, over its own processes and mounts; none
over the node's network or mounts, and it cannot make further user namespaces, which is where most
of the kernel's surface for attacks opens.
"""

import contextlib
import errno
import os
import resource
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from vcjob.local.node.cgroups import ContainerGroup
from vcjob.local.node.identity import IdMapRefused, IdMaps, parse_map, write_maps
from vcjob.local.node.messages import BindBelow, MakeBelow, StartContainer, WriteFile
from vcjob.local.node.starter import Holder, Identity
from vcjob.local.node.starter import Sandbox as SandboxOrder
from vcjob.local.node.starting import Starter, memory_file
from vcjob.local.sandbox.paths import make_directories_below, make_file_below, open_below

FILE_LIMIT = resource.getrlimit(resource.RLIMIT_NOFILE)
"""As vcjob was started; the node raises its own."""


class Sandbox(msgspec.Struct):
    """A bubblewrap: its process, and the pipe it tells the container's pid and end on.

    ``gate`` is where it waits until it is let through, None where it need not wait.
    """

    monitor: int
    status: int
    gate: "Gate | None" = None


def own_maps() -> IdMaps:
    """The maps of this process's user namespace as seen from inside: every number to itself."""
    users = parse_map(Path("/proc/self/uid_map").read_text())
    groups = parse_map(Path("/proc/self/gid_map").read_text())
    return IdMaps(
        tuple(msgspec.structs.replace(r, outside=r.inside) for r in users),
        tuple(msgspec.structs.replace(r, outside=r.inside) for r in groups),
    )


def start_sandbox(
    starter: Starter,
    program: str,
    request: StartContainer,
    stdio: Sequence[int],
    netns: int,
    maps: IdMaps,
    group: ContainerGroup | None = None,
) -> Sandbox:
    """Start a container in the network namespace ``netns``; raises OSError, UnsafePath.

    One with a gate goes on when it was let through, which is not waited for here: it takes the
    child some milliseconds to get there, and the node starts containers one after another.

    ``program`` is bubblewrap, ``maps`` this process's own maps (``own_maps``), ``group`` what the
    kernel limits the container by.
    """
    with contextlib.ExitStack() as opened:

        def kept(fd: int) -> int:
            opened.callback(os.close, fd)
            return fd

        own = list(stdio)

        def passed(fd: int) -> str:
            """The number that a descriptor will have in the sandbox's process."""
            own.append(kept(fd))
            return str(len(own) - 1)

        options = _options(request, passed)
        listed = passed(memory_file(os.fsencode("".join(f"{option}\0" for option in options))))
        status, status_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        arguments = [program, "--args", listed, "--json-status-fd", passed(status_end)]
        identity = _identity_of(request)
        gate = Gate() if request.user == 0 else None
        if gate is None:
            namespace = passed(_make_user_namespace(starter, identity, maps))
            arguments += ["--userns", namespace]
        joins = [kept(fd) for fd in group.open_for_joining()] if group else []
        order = SandboxOrder(
            identity,
            (*arguments, "--", *request.command),
            gated=gate is not None,
            control_groups=len(joins),
            process_limit=request.process_limit,
            file_limit=FILE_LIMIT,
            terminal=request.terminal,
        )
        at_gate = [gate.leave_to_child()] if gate else []
        try:
            monitor = starter.fork(order, [netns, *joins, *map(kept, at_gate), *own])
        except OSError:
            os.close(status)
            if gate:
                gate.close()
            raise
        return Sandbox(monitor, status, gate)


def _options(request: StartContainer, passed: Callable[[int], str]) -> list[str]:
    """bubblewrap's options with what the node makes and opens for them."""
    options: list[str] = []
    for option in request.options:
        match option:
            case BindBelow(base, path, target, read_only):
                name = "--ro-bind-fd" if read_only else "--bind-fd"
                options += [name, passed(open_below(base, path)), target]
            case WriteFile(target, text):
                file = passed(memory_file(os.fsencode(text)))
                options += ["--perms", "0644", "--file", file, target]
            case MakeBelow(base, path, is_file):
                make = make_file_below if is_file else make_directories_below
                make(base, path)
            case text:
                options.append(text)
    return options


class Gate:
    """Where a child that made its user namespace waits for its parent to write the maps."""

    def __init__(self) -> None:
        self._parent, self._child = socket.socketpair()

    def fileno(self) -> int:
        """The descriptor that is ready to be read when the child is there, or has ended."""
        return self._parent.fileno()

    def leave_to_child(self) -> int:
        """The child's end, which the caller hands over and closes."""
        return self._child.detach()

    def close(self) -> None:
        """In the parent: nobody will be let through."""
        self._parent.close()

    def let_through(self, child: int, maps: IdMaps) -> None:
        """In the parent: write the maps and let the child go on. Raises OSError."""
        with self._parent:
            if not self._parent.recv(1):
                raise OSError(errno.EPERM, "no user namespace for the container")
            try:
                write_maps(child, maps)
            except IdMapRefused as error:
                raise OSError(errno.EPERM, str(error)) from error
            self._parent.send(b"m")


def _make_user_namespace(starter: Starter, identity: Identity, maps: IdMaps) -> int:
    """A user namespace that belongs to the container's user, so that its bubblewrap may enter."""
    gate = Gate()
    ours, theirs = socket.socketpair()
    child_end = gate.leave_to_child()
    with ours:
        try:
            with theirs:
                child = starter.fork(Holder(identity), [child_end, theirs.fileno()])
        except OSError:
            gate.close()
            raise
        finally:
            os.close(child_end)
        gate.let_through(child, maps)
        ours.recv(1)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


def _identity_of(request: StartContainer) -> Identity:
    return Identity(request.user, request.group, request.groups)
