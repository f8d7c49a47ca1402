"""The process that forks what becomes a sandbox, in place of the node: it is small.

A fork copies the tables of all memory, and each page that either side touches afterwards: 2.5 ms of
CPU a container from the node, with the pods' network and the engine's modules in its memory, 1.1 ms
from here. (posix_spawn copies nothing, but the namespaces and the process limit have to be the
child's alone.) What is forked becomes a child of the node, which alone hears of its end.

So this module imports little, and what comes to it is named tuples by marshal, between two
processes of one Python: msgspec would add a third to what each fork copies.
"""

import contextlib
import errno
import fcntl
import gc
import marshal
import os
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from vcjob.local.node import syscalls
from vcjob.local.node.terminals import new_instance, use_terminal

NOT_STARTED = 128
"""Exit code of a container whose program never ran, as Kubernetes shows for StartError."""

MOST_DESCRIPTORS = 253
"""That one message may carry (SCM_MAX_FD, unix(7))."""

_LONGEST_NOTE = 16


class Identity(NamedTuple):
    """Numbers of the pods' world that a process is to have."""

    user: int
    group: int
    groups: tuple[int, ...]


class Sandbox(NamedTuple):
    """A bubblewrap to start in a pod's network; ``arguments`` begin with the program's path.

    Descriptors: the network namespace, ``control_groups`` to join, the gate if it is ``gated``,
    then those of the program, which get the numbers 0, 1, 2, … in their order.

    At a gate it makes its user namespace and waits until that has its maps; one without a gate is
    given one in ``arguments`` and belongs to ``identity`` before. ``file_limit`` is soft and hard,
    ``process_limit`` and ``terminal`` as in StartContainer.
    """

    identity: Identity
    arguments: tuple[str, ...]
    gated: bool
    control_groups: int
    process_limit: int
    file_limit: tuple[int, int]
    terminal: bool = False


class Holder(NamedTuple):
    """A process that makes a user namespace which belongs to ``identity``, and holds it.

    Descriptors: its gate; a socket on which it says a byte when it is through, and then waits for
    the other end to close.
    """

    identity: Identity


def encode(order: Sandbox | Holder) -> bytes:
    """An order as it is sent."""
    return marshal.dumps((isinstance(order, Sandbox), tuple(order.identity), *order[1:]))


def decode(order: bytes) -> Sandbox | Holder:
    """The other way of ``encode``."""
    is_sandbox, identity, *rest = marshal.loads(order)
    return (Sandbox if is_sandbox else Holder)(Identity(*identity), *rest)


def main(control: int) -> None:
    """Fork for the node, which asks on the socket ``control``, until it is gone."""
    # A collection would write to every object, and in a child copy the page of each.
    gc.disable()
    os.set_inheritable(control, False)
    connection = socket.socket(fileno=control)
    while True:
        note, fds, _, _ = socket.recv_fds(connection, _LONGEST_NOTE, MOST_DESCRIPTORS)
        if not note:
            return
        try:
            for fd in fds:  # recv_fds drops the flag by which the kernel would do it (CPython 3.11)
                os.set_inheritable(fd, False)
            with open(fds[0], "rb", closefd=False) as file:
                child = _fork(decode(file.read()), fds[1:])
        except OSError as error:
            child = -(error.errno or errno.EIO)
        finally:
            for fd in fds:
                os.close(fd)
        connection.send(child.to_bytes(4, "big", signed=True))


def _fork(order: Sandbox | Holder, fds: Sequence[int]) -> int:
    child = syscalls.fork_sibling()
    if child == 0:
        match order:
            case Sandbox():
                _run(lambda: _become_sandbox(order, fds))
            case Holder():
                _run(lambda: _hold_namespace(order, *fds))
    return child


def _run(work: Callable[[], object]) -> NoReturn:
    """In the child: work, and say on its standard error what went wrong; never returns."""
    code = NOT_STARTED
    try:
        work()
        code = 0
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"vcjob: the sandbox could not be started: {error}\n".encode())
    finally:
        os._exit(code)


def _become_sandbox(order: Sandbox, fds: Sequence[int]) -> None:
    # Out of the way of the numbers that the program's are to have.
    network, *rest = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(fds)) for fd in fds)
    groups, rest = rest[: order.control_groups], rest[order.control_groups :]
    gate = rest.pop(0) if order.gated else None
    for number, fd in enumerate(rest):
        os.dup2(fd, number, inheritable=True)
    for fd in groups:
        os.write(fd, b"0")
    _enter_network(network)
    if order.terminal:
        new_instance()
        use_terminal(0, (order.identity.user, order.identity.group))
    _stand_alone(order.file_limit)
    if gate is not None:
        _pass(gate)
        _limit(order.process_limit)
        if order.identity.group or any(order.identity.groups):  # a map of one number has no others
            _become(order.identity)
    else:
        _limit(order.process_limit)
        _become(order.identity)
    os.execve(order.arguments[0], order.arguments, {})


def _hold_namespace(order: Holder, gate: int, held: int) -> None:
    _become(order.identity)
    syscalls.set_dumpable()
    _pass(gate)
    os.write(held, b"r")
    os.read(held, 1)


def _pass(gate: int) -> None:
    """Make a user namespace, wait for its maps, and give up making more of them below it."""
    syscalls.unshare(syscalls.CLONE_NEWUSER)
    os.write(gate, b"u")
    if not os.read(gate, 1):
        raise OSError(errno.EPERM, "the user namespace got no maps")
    os.close(gate)
    limit = os.open("/proc/sys/user/max_user_namespaces", os.O_WRONLY | os.O_CLOEXEC)
    os.write(limit, b"0")
    os.close(limit)


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


def _stand_alone(file_limit: tuple[int, int]) -> None:
    """A session of its own, and nothing of what Python and the node set for themselves."""
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_NOFILE, file_limit)


def _limit(processes: int) -> None:
    """Bound the processes of the container; counted within its user namespace (since Linux 5.14).

    The kernel exempts the machine's root, whose number a pod keeps when root started vcjob; there
    the control group's limit holds.
    """
    if processes:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        limit = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _become(identity: Identity) -> None:
    os.setgroups(identity.groups)
    os.setresgid(identity.group, identity.group, identity.group)
    os.setresuid(identity.user, identity.user, identity.user)
