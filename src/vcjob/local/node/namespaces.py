"""Making the pods' world: a process tree in namespaces of its own, without rights on the machine.

Three processes take part. The *engine* forks (early: before threads, while it is small) the
*keeper*, which enters a new user namespace, and writes its maps, which only a process outside may
do. The keeper makes the other namespaces and forks their *first process*, pid 1, which does the
work; when pid 1 ends the kernel ends everything in its pid namespace. The keeper waits for it.

The end of any of them is the end of all: pid 1 has lost its socket when the engine is gone and is
killed by the kernel when the keeper is; the keeper is told when the engine ends.
"""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

import msgspec

from vcjob.local.node import syscalls
from vcjob.local.node.cgroups import ControlGroups
from vcjob.local.node.identity import IdMapRefused, IdMaps, choose_maps, write_maps
from vcjob.local.node.messages import StartFailed
from vcjob.local.node.options import NODE_LOG, NodeOptions
from vcjob.local.node.passages import open_passages
from vcjob.local.node.probe import MachineCannot, Step, explain

FirstProcess = Callable[[socket.socket, NodeOptions, ControlGroups | None], None]
"""What pid 1 runs. It raises StepFailed while it sets up, and returns when its work is over."""

_UNSHARED = b"u"
_MAPPED = b"m"


class World(msgspec.Struct, frozen=True):
    """The engine's hold on a world: its ``keeper`` process (a child), the socket to pid 1."""

    keeper: int
    control: socket.socket
    maps: IdMaps


class StepFailed(Exception):
    """A step of the set-up was refused; its cause is the OSError."""

    def __init__(self, step: Step, error: OSError) -> None:
        super().__init__(f"{step.value}: {error}")
        self.step = step
        self.error = error

    def message(self) -> StartFailed:
        """What the engine is told."""
        words = self.error.strerror or str(self.error)
        if self.error.filename:
            words = f"{self.error.filename}: {words}"
        return StartFailed(self.step.value, self.error.errno or 0, words)


class step:  # noqa: N801 - reads as a statement: with step(Step.PROC): ...
    """``with step(Step.X):`` turns an OSError inside into StepFailed."""

    def __init__(self, name: Step) -> None:
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StepFailed(self._name, error) from error


def make_world(options: NodeOptions, first_process: FirstProcess) -> World:
    """Fork the keeper, which makes the namespaces and runs ``first_process`` as their pid 1.

    Returns when the user namespace stands; how the rest went is the first message on ``control``.
    Call it from the main thread, before any other. Raises MachineCannot.
    """
    maps = choose_maps(move_root=options.move_root)
    control, node_control = socket.socketpair()
    handshake, node_handshake = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    engine = os.getpid()
    keeper = os.fork()
    if keeper == 0:
        _run_and_exit(lambda: _keep(engine, options, first_process, node_control, node_handshake))
    node_control.close()
    node_handshake.close()
    with handshake:
        try:
            answer = handshake.recv(4096)
            if answer != _UNSHARED:
                failed = (
                    msgspec.msgpack.decode(answer, type=StartFailed)
                    if answer
                    else StartFailed(Step.USER_NAMESPACE.value, 0, "the process ended")
                )
                raise explain(failed)
            try:
                write_maps(keeper, maps)
            except IdMapRefused as error:
                number = error.__cause__.errno if isinstance(error.__cause__, OSError) else 0
                raise explain(StartFailed(Step.ID_MAPS.value, number or 0, str(error))) from error
            handshake.send(_MAPPED)
        except MachineCannot:
            control.close()
            os.kill(keeper, signal.SIGKILL)
            os.waitpid(keeper, 0)
            raise
    return World(keeper, control, maps)


def _run_and_exit(work: Callable[[], None]) -> NoReturn:
    """Run in a forked process that must never return into its caller's frames."""
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(code)


def _keep(
    engine: int,
    options: NodeOptions,
    first_process: FirstProcess,
    control: socket.socket,
    handshake: socket.socket,
) -> None:
    _leave_engine(options, control, handshake)
    groups = None if options.move_root else ControlGroups.make(os.getpid())
    try:
        _make_namespaces(engine, options, first_process, control, handshake, groups)
    finally:
        if groups:
            groups.remove()


def _make_namespaces(
    engine: int,
    options: NodeOptions,
    first_process: FirstProcess,
    control: socket.socket,
    handshake: socket.socket,
    groups: ControlGroups | None,
) -> None:
    try:
        if options.move_root:
            with step(Step.PASSAGES):
                open_passages(options.passages)
        with step(Step.USER_NAMESPACE):
            syscalls.unshare(syscalls.CLONE_NEWUSER)
    except StepFailed as failed:
        handshake.send(msgspec.msgpack.encode(failed.message()))
        return
    handshake.send(_UNSHARED)
    if handshake.recv(1) != _MAPPED:
        return
    handshake.close()
    try:
        with step(Step.ID_MAPS):
            _become_root()
        with step(Step.NAMESPACES):
            syscalls.unshare(
                syscalls.CLONE_NEWNS
                | syscalls.CLONE_NEWNET
                | syscalls.CLONE_NEWIPC
                | syscalls.CLONE_NEWUTS
                | syscalls.CLONE_NEWPID
            )
    except StepFailed as failed:
        send_failure(control, failed)
        return
    first = os.fork()
    if first == 0:
        _run_and_exit(lambda: _first(options, first_process, control, groups))
    control.close()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
    syscalls.signal_on_parent_death(signal.SIGTERM)
    if os.getppid() != engine:  # it ended before we asked
        os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)


def _first(
    options: NodeOptions,
    first_process: FirstProcess,
    control: socket.socket,
    groups: ControlGroups | None,
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    syscalls.signal_on_parent_death(signal.SIGKILL)
    try:
        with step(Step.MOUNT):
            syscalls.mount("", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
        with step(Step.PROC):
            quiet = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
            syscalls.mount("proc", "/proc", "proc", quiet)
        with step(Step.TMPFS):
            flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
            syscalls.mount("tmpfs", options.directory, "tmpfs", flags, "mode=0700")
        first_process(control, options, groups)
    except StepFailed as failed:
        send_failure(control, failed)


def send_failure(control: socket.socket, failed: StepFailed) -> None:
    """Tell the engine why there will be no world."""
    from vcjob.local.node.wire import Outbox

    outbox = Outbox(control)
    outbox.put(msgspec.msgpack.encode(failed.message()))
    outbox.flush()


def _leave_engine(options: NodeOptions, *kept: socket.socket) -> None:
    """Cut what a forked process shares with the engine: session, descriptors, signal handlers.

    An own session, because Ctrl-C in the terminal is for the engine alone. An own standard output
    and error, because whoever reads the engine's must see it end with the engine.
    """
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(
        os.path.join(options.directory, NODE_LOG),
        os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
        0o600,
    )
    for target, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, target)
    open_now = {int(name) for name in os.listdir("/proc/self/fd")}
    for fd in open_now - {0, 1, 2, *(s.fileno() for s in kept)}:
        with contextlib.suppress(OSError):  # the one that listed the directory
            os.close(fd)


def _become_root() -> None:
    """Take number 0 of the new user namespace, and give up the groups of whoever started vcjob."""
    with contextlib.suppress(PermissionError):  # a map of one number: setgroups is denied
        os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    syscalls.set_dumpable()
