"""Programs that enter running containers, as the node sees them (``enterer.py`` starts them)."""

import contextlib
import os
import select
import socket
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from vcjob.local.node import syscalls
from vcjob.local.node.containers import Container
from vcjob.local.node.enterer import Entry, Identity
from vcjob.local.node.executables import run_beside
from vcjob.local.node.messages import Done, EnterContainer, EntryExited, SignalEntry
from vcjob.local.node.spawn import FILE_LIMIT
from vcjob.local.node.starter import NOT_STARTED
from vcjob.local.node.wire import Inbox, Outbox

RETRY_SECONDS = 0.005
"""How often to look whether a container that is being started has been; nothing tells of it."""

_NAMESPACES = {
    "user": syscalls.CLONE_NEWUSER,
    "mnt": syscalls.CLONE_NEWNS,
    "uts": syscalls.CLONE_NEWUTS,
    "ipc": syscalls.CLONE_NEWIPC,
    "net": syscalls.CLONE_NEWNET,
    "cgroup": syscalls.CLONE_NEWCGROUP,
}


class _Waiting(msgspec.Struct):
    """A request whose container may still be on its way; ``number`` is its call's."""

    container: Container | None
    request: EnterContainer
    stdio: Sequence[int]
    number: int


class Entering:
    """Has programs enter containers, through a process that starts with the first of them.

    ``bubblewrap`` is the program that containers are until their own runs.
    """

    def __init__(self, bubblewrap: str) -> None:
        self._bubblewrap = os.stat(bubblewrap)
        self._waiting: list[_Waiting] = []
        self._control: socket.socket | None = None
        self._lost: socket.socket | None = None
        self._entered: set[int] = set()
        self._decode = msgspec.msgpack.Decoder(EntryExited).decode

    @property
    def waits(self) -> bool:
        """Whether a request waits for its container."""
        return bool(self._waiting)

    def fileno(self) -> int:
        """The descriptor on which ends of programs are told, -1 while there is none."""
        return self._control.fileno() if self._control else -1

    def hold(
        self, container: Container | None, request: EnterContainer, stdio: Sequence[int], call: int
    ) -> None:
        """Take a request in, and the descriptors with it."""
        self._waiting.append(_Waiting(container, request, stdio, call))

    def enter_started(self, running: Mapping[str, Container]) -> Iterator[Done]:
        """Start what waits for a container that runs its program now; answers those requests."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            error = ""
            try:
                if one.container is None or running.get(one.request.container) is not one.container:
                    error = f"container {one.request.container} is not running"
                elif not self._enter(one.container, one):
                    self._waiting.append(one)
                    continue
            except OSError as refused:
                error = f"container {one.request.container} cannot be entered: {refused.strerror}"
            for fd in one.stdio:
                os.close(fd)
            yield Done(one.number, error)

    def signal(self, request: SignalEntry) -> None:
        """Send a signal to a program that has entered."""
        if self._control and request.entry in self._entered:
            self._send(msgspec.msgpack.encode(request))

    def read(self) -> Iterator[EntryExited]:
        """Programs that have ended. All have, as far as is known, when their starter has."""
        assert self._control is not None, "there was something to read"
        alive = self._inbox.receive()
        while (frame := self._inbox.frame()) is not None:
            exited = self._decode(frame)
            self._entered.discard(exited.entry)
            yield exited
        if not alive:
            self._lost, self._control = self._control, None
            for entry in sorted(self._entered):
                yield EntryExited(entry, NOT_STARTED, "the process that started it has ended")
            self._entered.clear()

    def close_lost(self) -> None:
        """Close the socket of a starter that has ended, once nobody polls it."""
        if self._lost:
            self._lost.close()
            self._lost = None

    def _enter(self, container: Container, one: _Waiting) -> bool:
        """Have the program started; False while the container's own does not run yet."""
        first = container.process
        if not first:
            return False
        with contextlib.ExitStack() as opened:

            def kept(fd: int) -> int:
                opened.callback(os.close, fd)
                return fd

            process = kept(os.pidfd_open(first))
            status = _status(first)
            # Before its program runs, a container has not all of its walls yet.
            if os.path.samestat(os.stat(f"/proc/{first}/exe"), self._bubblewrap):
                return False
            # Its number could have gone to another process before it was opened.
            if int(status["PPid"]) != container.sandbox.monitor or _has_ended(process):
                raise ProcessLookupError(0, "it has ended")
            group = container.group
            groups = [kept(fd) for fd in group.open_for_joining()] if group else []
            entry = Entry(
                one.request,
                Identity(
                    container.user,
                    container.group_number,
                    container.groups,
                    int(status["CapBnd"], 16),
                    container.capabilities,
                ),
                _other_namespaces(first),
                container.process_limit,
                FILE_LIMIT,
                len(groups),
            )
            if self._control is None:
                self._start()
            self._entered.add(one.request.entry)
            self._send(msgspec.msgpack.encode(entry), (*one.stdio, process, *groups))
        return True

    def _send(self, frame: bytes, fds: tuple[int, ...] = ()) -> None:
        self._outbox.put(frame, fds)
        self._outbox.flush()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            run_beside("vcjob.local.node.enterer", theirs.fileno())
        self._inbox = Inbox(self._control)
        self._outbox = Outbox(self._control)


def _status(process: int) -> dict[str, str]:
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
        return {name: rest.strip() for name, _, rest in (line.partition(":") for line in file)}


def _has_ended(process: int) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(0))


def _other_namespaces(process: int) -> int:
    """The flags of the namespaces that are not ours: some a kernel or sandbox does not have."""
    flags = 0
    for name, flag in _NAMESPACES.items():
        try:
            if os.readlink(f"/proc/{process}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"):
                flags |= flag
        except FileNotFoundError:
            continue
    return flags
