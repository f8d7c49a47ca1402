"""The first process of the pods' world: one loop that carries out what the engine asks.

It waits on the engine's socket, on its children (SIGCHLD wakes it) and on the pipes over which
sandboxes tell the pids and ends of their containers. When the
engine's end of the socket closes, it returns, and the kernel ends every process in here.
"""

import contextlib
import os
import resource
import select
import signal
import socket
from typing import Protocol

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.local.node import messages, syscalls
from vcjob.local.node.cgroups import ControlGroups
from vcjob.local.node.containers import Container
from vcjob.local.node.entering import RETRY_SECONDS, Entering
from vcjob.local.node.memory import WATCH_SECONDS, kill_over_limit
from vcjob.local.node.spawn import own_maps, start_sandbox
from vcjob.local.node.starting import Starter
from vcjob.local.node.unmounting import unmount_below
from vcjob.local.node.wire import Inbox, Outbox
from vcjob.local.sandbox.paths import remove_tree

_MOST_AT_GATES = 4
"""Sandboxes on their way at once: each is a copy of their starter, of some MB, until it runs."""


class Network(Protocol):
    """What the node needs of the pods' network (``local/network``)."""

    def add_pod(self, uid: str, address: str, group: int) -> int:
        """Make a pod's network namespace and return a descriptor of it, kept by the network."""

    def remove_pod(self, uid: str) -> None:
        """Take the pod's namespace and links away."""

    def set_policy(self, rules: bytes) -> None:
        """Change the packet filter by an update."""


class Pod(msgspec.Struct):
    """A pod as the node knows it."""

    netns: int
    containers: set[str] = set()
    removal: tuple[int, tuple[str, ...]] | None = None


class NodeServer:
    """Carries out requests from ``control``; ``bubblewrap`` is the program's path.

    ``groups`` keep memory limits; without them (None) the server watches.
    """

    def __init__(
        self,
        control: socket.socket,
        network: Network,
        bubblewrap: str,
        groups: ControlGroups | None,
    ) -> None:
        self._control = control
        self._network = network
        self._bubblewrap = bubblewrap
        self._groups = groups
        self._entering = Entering(bubblewrap)
        self._starter = Starter()
        self._started = 0
        self._inbox = Inbox(control)
        self._outbox = Outbox(control)
        self._maps = own_maps()
        self._pods: dict[str, Pod] = {}
        self._containers: dict[str, Container] = {}
        self._by_monitor: dict[int, Container] = {}
        self._by_status: dict[int, Container] = {}
        self._at_gates: dict[int, tuple[Container, int]] = {}
        self._poll = select.poll()
        self._decode = msgspec.msgpack.Decoder(messages.Call).decode
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def serve(self, ready: messages.Ready, descriptors: tuple[int, ...] = ()) -> None:
        """Tell the engine that the world stands, and work until the engine is gone."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._control.setblocking(False)
        self._answer(ready, descriptors)
        self._poll.register(woken, select.POLLIN)
        control = self._control.fileno()
        while True:
            try:
                waiting = not self._outbox.flush()
            except OSError:
                return
            self._poll.register(control, select.POLLIN | (select.POLLOUT if waiting else 0))
            # The kernel watches where it can.
            watching = not self._groups and kill_over_limit(self._containers.values())
            timeout = WATCH_SECONDS if watching else None
            if self._enter_started():
                timeout = RETRY_SECONDS
            for fd, happened in self._poll.poll(timeout and timeout * 1000):
                if fd == woken:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, 4096)
                    self._reap()
                elif fd == control:
                    if happened & ~select.POLLOUT and not self._take_requests():
                        return
                elif fd in self._at_gates:
                    self._let_through(fd)
                elif fd == self._entering.fileno():
                    self._read_entries(fd)
                elif fd in self._by_status:
                    self._read_status(self._by_status[fd])

    def _take_requests(self) -> bool:
        try:
            if not self._inbox.receive():
                return False
        except BlockingIOError:
            return True
        while (frame := self._inbox.frame()) is not None:
            call = self._decode(frame)
            try:
                answer = self._carry_out(call)
            except (OSError, VcjobError) as error:
                answer = messages.Done(call.number, str(error))
            if answer is not None:
                self._answer(answer)
        return True

    def _answer(self, answer: messages.Answer, descriptors: tuple[int, ...] = ()) -> None:
        self._outbox.put(msgspec.msgpack.encode(answer), descriptors)

    def _carry_out(self, call: messages.Call) -> messages.Done | None:
        """Do what is asked; None where the answer is given later or was given already."""
        match call.request:
            case messages.AddPod(uid, address, group):
                self._pods[uid] = Pod(self._network.add_pod(uid, address, group))
            case messages.RemovePod(uid, directories):
                return self._remove_pod(call.number, uid, directories)
            case messages.StartContainer() as request:
                return self._start(call.number, request)
            case messages.SignalContainer(name, number):
                if container := self._containers.get(name):
                    container.send(signal.Signals(number))
            case messages.EnterContainer(name) as request:
                stdio = self._inbox.take_fds(3)
                self._entering.hold(self._containers.get(name), request, stdio, call.number)
                return None
            case messages.SignalEntry() as request:
                self._entering.signal(request)
            case messages.SetPolicy(rules):
                self._network.set_policy(rules)
            case messages.OpenSocket(pod):
                with self._open_socket(pod) as opened:
                    done = messages.Done(call.number, descriptors=1)
                    self._answer(done, (opened.fileno(),))
                return None
            case messages.Mount(target, size):
                flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
                options = f"mode=0777,size={size}" if size else "mode=0777"
                syscalls.mount("tmpfs", target, "tmpfs", flags, options)
        return messages.Done(call.number)

    def _start(self, number: int, request: messages.StartContainer) -> messages.Done | None:
        stdio = self._inbox.take_fds(3)
        group = None
        try:
            pod = self._pods.get(request.pod)
            if pod is None or pod.removal:
                raise VcjobError(f"pod {request.pod} is gone")
            if self._groups and (request.memory_limit or request.process_limit):
                self._started += 1
                group = self._groups.add(self._started, request.memory_limit, request.process_limit)
            sandbox = start_sandbox(
                self._starter, self._bubblewrap, request, stdio, pod.netns, self._maps, group
            )
        except (OSError, VcjobError):
            if group:
                group.remove()
            raise
        finally:
            for fd in stdio:
                os.close(fd)
        container = Container(request, sandbox, group)
        pod.containers.add(container.name)
        self._containers[container.name] = container
        self._by_monitor[sandbox.monitor] = container
        self._by_status[sandbox.status] = container
        self._poll.register(sandbox.status, select.POLLIN)
        if sandbox.gate is None:
            return messages.Done(number)
        if len(self._at_gates) == _MOST_AT_GATES:
            self._let_through(next(iter(self._at_gates)))
        self._at_gates[sandbox.gate.fileno()] = (container, number)
        self._poll.register(sandbox.gate, select.POLLIN)
        return None

    def _let_through(self, fd: int) -> None:
        """Let a sandbox that is ready go on, and answer. One that could not start exits anyway."""
        container, number = self._at_gates.pop(fd)
        self._poll.unregister(fd)
        sandbox = container.sandbox
        assert sandbox.gate is not None, "only those with a gate wait at one"
        if self._by_monitor.get(sandbox.monitor) is not container:
            sandbox.gate.close()
            self._answer(messages.Done(number, "the container ended before its program started"))
            return
        try:
            sandbox.gate.let_through(sandbox.monitor, self._maps)
        except OSError as error:
            self._answer(messages.Done(number, str(error)))
        else:
            self._answer(messages.Done(number))

    def _enter_started(self) -> bool:
        """Have what waits enter containers that have started; whether some still waits."""
        if not self._entering.waits:
            return False
        for answer in self._entering.enter_started(self._containers):
            self._answer(answer)
        if (fd := self._entering.fileno()) >= 0:
            self._poll.register(fd, select.POLLIN)
        # An answer has to go out before the wait, whatever else still has to be tried again.
        self._outbox.flush()
        return self._entering.waits

    def _read_entries(self, fd: int) -> None:
        for exited in self._entering.read():
            self._answer(exited)
        if self._entering.fileno() != fd:
            self._poll.unregister(fd)
            self._entering.close_lost()

    def _read_status(self, container: Container) -> None:
        # None: what was ready was an ended container's pipe whose number this one got.
        if container.read_status() is False:
            self._poll.unregister(container.sandbox.status)
            del self._by_status[container.sandbox.status]

    def _reap(self) -> None:
        """Collect ended children: sandboxes, and orphans that the kernel gave to pid 1."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if container := self._by_monitor.pop(process, None):
                self._ended(container, status)

    def _ended(self, container: Container, wait_status: int) -> None:
        if container.sandbox.status in self._by_status:
            while container.read_status():
                pass
            self._poll.unregister(container.sandbox.status)
            del self._by_status[container.sandbox.status]
        os.close(container.sandbox.status)
        del self._containers[container.name]
        self._answer(container.exited(wait_status))
        pod = self._pods[container.pod]
        pod.containers.discard(container.name)
        if pod.removal and not pod.containers:
            self._answer(self._finish_removal(container.pod, *pod.removal))

    def _remove_pod(
        self, number: int, uid: str, directories: tuple[str, ...]
    ) -> messages.Done | None:
        pod = self._pods.get(uid)
        if pod and pod.containers:
            pod.removal = (number, directories)
            for name in pod.containers:
                self._containers[name].send(signal.SIGKILL)
            return None
        return self._finish_removal(uid, number, directories)

    def _finish_removal(self, uid: str, number: int, directories: tuple[str, ...]) -> messages.Done:
        """Every step is tried; the answer names what could not be done."""
        wrong = []
        if self._pods.pop(uid, None):
            try:
                self._network.remove_pod(uid)
            except (OSError, VcjobError) as error:
                wrong.append(str(error))
        for directory in directories:
            try:
                unmount_below(directory)
                remove_tree(directory)
            except OSError as error:
                wrong.append(str(error))
        return messages.Done(number, "; ".join(wrong))

    def _open_socket(self, uid: str) -> socket.socket:
        if not uid:
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        if uid not in self._pods:
            raise VcjobError(f"pod {uid} is gone")
        syscalls.setns(self._pods[uid].netns, syscalls.CLONE_NEWNET)
        try:
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        finally:
            syscalls.setns(self._home, syscalls.CLONE_NEWNET)
