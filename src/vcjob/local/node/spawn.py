"""Starting a sandbox: one fork, the pod's network, a user namespace of its own, then bubblewrap.

A fork and not posix_spawn, because the namespaces and the process limit have to be the child's
alone. The user namespace is made here and not by bubblewrap, which can map one number only. In it
the container has what capabilities the launcher leaves it, over its own processes and mounts; none
over the node's network or mounts, and it cannot make further user namespaces, which is where most
of the kernel's surface for attacks opens.
"""

import contextlib
import errno
import os
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from vcjob.local.node import syscalls
from vcjob.local.node.cgroups import ContainerGroup
from vcjob.local.node.identity import IdMapRefused, IdMaps, parse_map, write_maps
from vcjob.local.node.messages import BindBelow, MakeBelow, StartContainer, WriteFile
from vcjob.local.sandbox.paths import make_directories_below, make_file_below, open_below

NOT_STARTED = 128
"""Exit code of a container whose program never ran, as Kubernetes shows for StartError."""

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

        inherited: list[int] = []
        options: list[str] = []
        for option in request.options:
            if isinstance(option, BindBelow):
                source = kept(open_below(option.base, option.path))
                inherited.append(source)
                name = "--ro-bind-fd" if option.read_only else "--bind-fd"
                options += [name, str(source), option.target]
            elif isinstance(option, WriteFile):
                text = kept(_memory_file(option.text))
                inherited.append(text)
                options += ["--perms", "0644", "--file", str(text), option.target]
            elif isinstance(option, MakeBelow):
                make = make_file_below if option.file else make_directories_below
                make(option.base, option.path)
            else:
                options.append(option)
        arguments = kept(_memory_file("".join(f"{option}\0" for option in options)))
        status, status_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        kept(status_end)
        inherited += [arguments, status_end]
        argv = [program, "--args", str(arguments), "--json-status-fd", str(status_end)]
        gate = Gate() if request.user == 0 else None
        if gate is None:
            namespace = kept(_make_user_namespace(request, maps))
            inherited.append(namespace)
            argv += ["--userns", str(namespace)]
        argv += ["--", *request.command]
        joins = [kept(fd) for fd in group.open_for_joining()] if group else []

        def become_sandbox() -> None:
            for fd in joins:
                os.write(fd, b"0")
            _enter_network(netns)
            _stand_alone(stdio, inherited)
            if gate:
                gate.enter()
                _limit(request)
                if request.group or any(request.groups):  # a map of one number has no others
                    _become(request)
            else:
                _limit(request)
                _become(request)
            os.execve(program, argv, {})

        try:
            monitor = fork(become_sandbox)
        except OSError:
            os.close(status)
            raise
        if gate:
            gate.leave_to_child()
        return Sandbox(monitor, status, gate)


class Gate:
    """Where a child that made its user namespace waits for its parent to write the maps."""

    def __init__(self) -> None:
        self._parent, self._child = socket.socketpair()

    def fileno(self) -> int:
        """The descriptor that is ready to be read when the child is there, or has ended."""
        return self._parent.fileno()

    def leave_to_child(self) -> None:
        """In the parent after the fork: close the child's end."""
        self._child.close()

    def close(self) -> None:
        """In the parent: nobody will be let through."""
        self._parent.close()

    def enter(self) -> None:
        """In the child: make the namespace, wait, and give up making more of them below it."""
        self._parent.close()
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        self._child.send(b"u")
        if not self._child.recv(1):
            raise OSError(errno.EPERM, "the user namespace got no maps")
        self._child.close()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")

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


def _make_user_namespace(request: StartContainer, maps: IdMaps) -> int:
    """A user namespace that belongs to the container's user, so that its bubblewrap may enter."""
    gate = Gate()
    held, hold = socket.socketpair()

    def make() -> None:
        held.close()
        _become(request)
        syscalls.set_dumpable()
        gate.enter()
        hold.send(b"r")
        hold.recv(1)
        os._exit(0)

    child = fork(make)
    gate.leave_to_child()
    hold.close()
    with held:
        gate.let_through(child, maps)
        held.recv(1)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


def fork(work: Callable[[], None]) -> int:
    """Fork; the child runs ``work``, and says on its standard error what went wrong."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"vcjob: the sandbox could not be started: {error}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _stand_alone(stdio: Sequence[int], inherited: Sequence[int]) -> None:
    """Take the container's standard streams, and undo what Python and the node set for themselves.

    The descriptors in ``inherited`` stay open across exec; all others close.
    """
    for target, source in enumerate(stdio):
        os.dup2(source, target)
    for fd in inherited:
        os.set_inheritable(fd, True)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_NOFILE, FILE_LIMIT)


def _enter_network(netns: int) -> None:
    """Join the pod's network, with a /sys that shows its interfaces and not the machine's.

    sysfs belongs to a network namespace, which here only the node may mount it for. Where the
    kernel refuses (inside a container with parts of /sys hidden), /sys is empty.
    """
    syscalls.setns(netns, syscalls.CLONE_NEWNET)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    quiet = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC | syscalls.MS_RDONLY
    try:
        syscalls.mount("sysfs", "/sys", "sysfs", quiet)
    except PermissionError:
        syscalls.mount("tmpfs", "/sys", "tmpfs", quiet)


def _limit(request: StartContainer) -> None:
    """Bound the processes of the container; counted within its user namespace (since Linux 5.14).

    The kernel exempts the machine's root, whose number a pod keeps when root started vcjob; there
    the control group's limit holds.
    """
    if request.process_limit:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        limit = request.process_limit
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _become(request: StartContainer) -> None:
    os.setgroups(request.groups)
    os.setresgid(request.group, request.group, request.group)
    os.setresuid(request.user, request.user, request.user)


def _memory_file(text: str) -> int:
    """A file without a name that holds ``text``, ready to be read from its beginning."""
    fd = os.memfd_create("vcjob", os.MFD_CLOEXEC)
    view = memoryview(os.fsencode(text))
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
