"""The process that puts programs into running containers, one fork each.

Not the node itself: whoever enters a container is seen from inside before its program runs. The
node's memory holds the environments of all pods; and its executable, Python's, would be open to
being written by a program that is a script of ``#!/proc/self/exe`` (the way out of CVE-2019-5736).
This process starts with the first entry, holds nothing of other pods, and is executed from a
read-only mount (``executables.py``).

A fork and setns(2) through the C library, as ``nsenter`` is not on every machine and would have to
be confined by another program.
"""

import os
import resource
import select
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from vcjob.local.node import syscalls
from vcjob.local.node.messages import EnterContainer, EntryExited, SignalEntry
from vcjob.local.node.starter import NOT_STARTED
from vcjob.local.node.terminals import become_terminal
from vcjob.local.node.wire import Inbox, Outbox

_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_LONGEST_ERROR = 4096


class Identity(msgspec.Struct, frozen=True):
    """Whom a program runs as: numbers of the container's namespace, capabilities as bits."""

    user: int
    group: int
    groups: tuple[int, ...]
    bounding: int
    capabilities: int


class Entry(msgspec.Struct, frozen=True, tag=True):
    """A program to start. Descriptors: its three streams, a pidfd, control groups to join.

    ``namespaces`` are the CLONE_NEW… flags of those to enter, but for the pid namespace.
    ``process_limit`` as in StartContainer (0: none), ``file_limit`` soft and hard.
    """

    request: EnterContainer
    identity: Identity
    namespaces: int
    process_limit: int
    file_limit: tuple[int, int]
    control_groups: int = 0


def main(control: int) -> None:
    """Start what the node asks for on the socket ``control``, until the node is gone."""
    syscalls.set_not_dumpable()
    os.set_inheritable(control, False)
    Enterer(socket.socket(fileno=control)).serve()


class Enterer:
    """Starts programs, and tells of their ends."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._inbox = Inbox(control)
        self._outbox = Outbox(control)
        self._processes: dict[int, int] = {}
        self._entries: dict[int, tuple[int, int]] = {}
        self._home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._last_capability = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
        self._decode = msgspec.msgpack.Decoder(Entry | SignalEntry).decode

    def serve(self) -> None:
        """Work until the node's end of the socket closes."""
        woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._control.setblocking(False)
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        while True:
            waiting = not self._outbox.flush()
            poll.register(self._control, select.POLLIN | (select.POLLOUT if waiting else 0))
            for fd, happened in poll.poll():
                if fd == woken:
                    os.read(woken, 4096)
                    self._reap()
                elif happened & ~select.POLLOUT and not self._take():
                    return

    def _take(self) -> bool:
        try:
            if not self._inbox.receive():
                return False
        except BlockingIOError:
            return True
        while (frame := self._inbox.frame()) is not None:
            match self._decode(frame):
                case SignalEntry(entry, number):
                    self._signal(entry, number)
                case Entry() as entry:
                    self._start(entry)
        return True

    def _signal(self, entry: int, number: int) -> None:
        if process := self._processes.get(entry):
            # A child that was not collected yet keeps its number.
            kill = os.killpg if number == signal.SIGKILL else os.kill
            try:
                kill(process, number)
            except ProcessLookupError:  # it has not made its process group yet
                os.kill(process, number)

    def _start(self, entry: Entry) -> None:
        fds = self._inbox.take_fds(4 + entry.control_groups)
        said, say = os.pipe2(os.O_CLOEXEC)
        try:
            process = self._fork_into(fds[3])
            if process == 0:
                self._become(entry, fds, say)
        except OSError as error:
            os.close(said)
            text = f"the container cannot be entered: {error.strerror}"
            self._tell(EntryExited(entry.request.entry, NOT_STARTED, text))
        else:
            self._processes[entry.request.entry] = process
            self._entries[process] = (entry.request.entry, said)
        finally:
            for fd in (*fds, say):
                os.close(fd)

    def _fork_into(self, container: int) -> int:
        """Fork a child into the pid namespace, which only children can enter."""
        syscalls.setns(container, syscalls.CLONE_NEWPID)
        process = -1
        try:
            process = os.fork()
        finally:
            if process:
                syscalls.setns(self._home, syscalls.CLONE_NEWPID)
        return process

    def _become(self, entry: Entry, fds: Sequence[int], say: int) -> None:
        """In the child: become the program; never returns."""
        code = NOT_STARTED
        try:
            for fd in fds[4:]:
                os.write(fd, b"0")
            syscalls.setns(fds[3], entry.namespaces)
            _stand_alone(entry)
            take_rights(entry.identity, self._last_capability)
            if entry.request.terminal:
                become_terminal(fds[0])
            else:
                for target, source in enumerate(fds[:3]):
                    os.dup2(source, target)
            code, error = _execute(entry.request)
        except BaseException as unexpected:
            error = f"the container cannot be entered: {unexpected}"
        try:
            os.write(say, error.encode(errors="replace")[:_LONGEST_ERROR])
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while self._entries:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            entry, said = self._entries.pop(process)
            del self._processes[entry]
            error = os.read(said, _LONGEST_ERROR).decode(errors="replace")
            os.close(said)
            code = os.waitstatus_to_exitcode(status)
            self._tell(EntryExited(entry, code if code >= 0 else 128 - code, error))

    def _tell(self, exited: EntryExited) -> None:
        self._outbox.put(msgspec.msgpack.encode(exited))


def _execute(request: EnterContainer) -> tuple[int, str]:
    """Become the program, found by the PATH it is given; returns the exit code and why not."""
    try:
        os.chdir(request.directory)
    except OSError as error:
        return NOT_STARTED, f"working directory {request.directory}: {error.strerror}"
    program = request.command[0]
    try:
        os.execvpe(program, request.command, dict(request.environment))
    except (FileNotFoundError, NotADirectoryError) as error:
        return _NOT_FOUND, f"{program}: {error.strerror}"
    except OSError as error:
        return _NOT_EXECUTABLE, f"{program}: {error.strerror}"


def _stand_alone(entry: Entry) -> None:
    """A session of its own, the container's limits, and nothing of Python's own settings."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_NOFILE, entry.file_limit)
    if entry.process_limit:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        limit = entry.process_limit
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def take_rights(identity: Identity, last_capability: int) -> None:
    """Give up, inside the container's user namespace, what its first process does not have."""
    for capability in range(last_capability + 1):
        if not identity.bounding >> capability & 1:
            syscalls.drop_from_bounding_set(capability)
    if identity.user or identity.group or any(identity.groups):
        os.setgroups(identity.groups)
    os.setresgid(identity.group, identity.group, identity.group)
    os.setresuid(identity.user, identity.user, identity.user)
    if identity.user == 0:
        syscalls.set_capabilities(identity.capabilities)
    syscalls.gain_no_privileges()
