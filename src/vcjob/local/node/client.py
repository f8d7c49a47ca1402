"""The engine's one door to the node process: ask, await the answer, hear of containers that ended.

``start_node`` forks at once and must run before the event loop does; ``NodeClient.connect`` waits
until the world stands.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.local.node import messages
from vcjob.local.node.first_process import SetUpNetwork, run_node
from vcjob.local.node.identity import IdMaps
from vcjob.local.node.namespaces import World, make_world
from vcjob.local.node.options import NodeOptions
from vcjob.local.node.probe import Step, explain
from vcjob.local.node.wire import Inbox, Outbox


class NodeRefused(VcjobError):
    """The node could not do what was asked; the text says why."""


class NodeGone(VcjobError):
    """The node process ended, and every pod with it."""


def start_node(options: NodeOptions, set_up_network: SetUpNetwork) -> World:
    """Start the node process; raises MachineCannot. Must run in the main thread before others.

    ``set_up_network`` is run inside it (``local/network``).
    """
    return make_world(options, run_node(set_up_network))


class Entry(msgspec.Struct, frozen=True, eq=False):
    """A program inside a container; ``exited`` resolves with its end, or raises NodeGone."""

    number: int
    exited: "asyncio.Future[messages.EntryExited]"


class NodeClient:
    """Asks the node process. Every method raises NodeRefused or NodeGone.

    ``on_exit`` is called with each ContainerExited, in order; an exit may be told before
    ``start_container`` has returned. ``closed`` is done when the node process is gone, however
    that came. ``name_server`` is the engine's end of the name server's socket.
    """

    def __init__(self, world: World) -> None:
        self.maps: IdMaps = world.maps
        self.memory_groups = False
        self.name_server: socket.socket | None = None
        self.on_exit: Callable[[messages.ContainerExited], None] = lambda exited: None
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._keeper = world.keeper
        self._control = world.control
        self._inbox = Inbox(self._control)
        self._outbox = Outbox(self._control)
        self._ready: asyncio.Future[messages.Ready | messages.StartFailed] = (
            self._loop.create_future()
        )
        self._calls: dict[int, asyncio.Future[list[int]]] = {}
        self._last = 0
        self._entries: dict[int, asyncio.Future[messages.EntryExited]] = {}
        self._last_entry = 0
        self._decode = msgspec.msgpack.Decoder(messages.Answer).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._receive)

    @classmethod
    async def connect(cls, world: World) -> "NodeClient":
        """Wait until the world stands; raises MachineCannot with the step that failed."""
        client = cls(world)
        first = await asyncio.shield(client._ready)  # it is answered, waited for or not
        if isinstance(first, messages.StartFailed):
            await client.close()
            raise explain(first)
        client.memory_groups = first.memory_groups
        return client

    async def add_pod(self, uid: str, address: str, group: int) -> None:
        """Make the pod's network namespace with ``address`` on its eth0."""
        await self._call(messages.AddPod(uid, address, group))

    async def remove_pod(self, uid: str, directories: Iterable[str] = ()) -> None:
        """Kill what runs in the pod, then release it and remove its directories (may take long)."""
        await self._call(messages.RemovePod(uid, tuple(directories)))

    async def start_container(
        self, request: messages.StartContainer, stdin: int, stdout: int, stderr: int
    ) -> None:
        """Start a container on these three descriptors, which stay the caller's to close."""
        await self._call(request, (stdin, stdout, stderr))

    async def enter(
        self,
        container: str,
        command: Sequence[str],
        stdin: int,
        stdout: int,
        stderr: int,
        *,
        environment: Mapping[str, str],
        directory: str = "/",
        terminal: bool = False,
    ) -> Entry:
        """Start a program inside a running container, on descriptors that stay the caller's.

        ``terminal``: the program gets a terminal of the container's for all three; ``stdin`` is a
        socket, at whose other end ``receive_terminal`` gets its master. A program that is not
        found is told by the entry's end and not here. NodeRefused: the container does not run.
        """
        self._last_entry += 1
        number = self._last_entry
        exited: asyncio.Future[messages.EntryExited] = self._loop.create_future()
        self._entries[number] = exited
        request = messages.EnterContainer(
            container, number, tuple(command), tuple(environment.items()), directory, terminal
        )
        try:
            await self._call(request, (stdin, stdout, stderr))
        except NodeRefused:
            self._entries.pop(number, None)
            raise
        return Entry(number, exited)

    async def signal_entry(self, entry: Entry, number: signal.Signals) -> None:
        """Send a signal to a program that entered a container; one that has ended is fine.

        SIGKILL goes to its process group, which what it started usually is in.
        """
        await self._call(messages.SignalEntry(entry.number, number))

    async def signal(self, container: str, number: signal.Signals) -> None:
        """Send a signal to a container's first process, SIGKILL to its whole tree.

        One that has ended already is fine.
        """
        await self._call(messages.SignalContainer(container, number))

    async def set_policy(self, rules: bytes) -> None:
        """Change the packet filter by an update of ``local/network/policy.py``, each in turn."""
        await self._call(messages.SetPolicy(rules))

    async def mount(self, target: str, size: int = 0) -> None:
        """Mount a tmpfs of at most ``size`` bytes at ``target``, seen by pods only."""
        await self._call(messages.Mount(target, size))

    async def open_socket(self, pod: str = "") -> socket.socket:
        """An unconnected, non-blocking TCP socket in the node's network, or in a pod's."""
        (fd,) = await self._call(messages.OpenSocket(pod))
        opened = socket.socket(fileno=fd)
        opened.setblocking(False)
        return opened

    async def close(self) -> None:
        """End the node process and everything in it, and wait until it is gone."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        await asyncio.shield(self.closed)  # who gives up waiting does not undo it for others

    async def _call(self, request: messages.Request, fds: Sequence[int] = ()) -> list[int]:
        if self._control.fileno() < 0:
            raise NodeGone("the node process has ended, and every pod with it")
        self._last += 1
        answered: asyncio.Future[list[int]] = self._loop.create_future()
        self._calls[self._last] = answered
        self._outbox.put(self._encode(messages.Call(self._last, request)), tuple(fds))
        self._send()
        return await answered

    def _send(self) -> None:
        try:
            sent = self._outbox.flush()
        except OSError:
            return  # the reader sees the end too, and tells everybody
        if sent:
            self._loop.remove_writer(self._control)
        else:
            self._loop.add_writer(self._control, self._send)

    def _receive(self) -> None:
        try:
            alive = self._inbox.receive()
        except BlockingIOError:
            return
        while (frame := self._inbox.frame()) is not None:
            self._take(self._decode(frame))
        if not alive:
            self._end()

    def _take(self, answer: messages.Answer) -> None:
        match answer:
            case messages.Ready(descriptors):
                for fd in self._inbox.take_fds(descriptors):
                    self.name_server = socket.socket(fileno=fd)
                self._ready.set_result(answer)
            case messages.StartFailed():
                self._ready.set_result(answer)
            case messages.ContainerExited():
                self.on_exit(answer)
            case messages.EntryExited(number):
                exited = self._entries.pop(number, None)
                if exited and not exited.done():
                    exited.set_result(answer)
            case messages.Done(number, error, descriptors):
                fds = self._inbox.take_fds(descriptors)
                waiting = self._calls.pop(number)
                if waiting.cancelled():
                    for fd in fds:
                        os.close(fd)
                elif error:
                    waiting.set_exception(NodeRefused(error))
                else:
                    waiting.set_result(fds)

    def _end(self) -> None:
        """The node is gone: collect its keeper, fail what waits."""
        self._loop.remove_reader(self._control)
        self._loop.remove_writer(self._control)
        self._control.close()
        self._inbox.close()
        self._outbox.close()
        if not self._ready.done():
            self._ready.set_result(
                messages.StartFailed(Step.SANDBOX.value, 0, "the node process ended early")
            )
        for waiting in self._calls.values():
            if not waiting.done():
                waiting.set_exception(NodeGone("the node process has ended, and every pod with it"))
        self._calls.clear()
        for exited in self._entries.values():
            if not exited.done():
                exited.set_exception(NodeGone("the node process has ended, and every pod with it"))
                exited.exception()  # whoever left meanwhile need not hear of it
        self._entries.clear()
        keeper = os.pidfd_open(self._keeper)
        self._loop.add_reader(keeper, self._collect, keeper)

    def _collect(self, keeper: int) -> None:
        self._loop.remove_reader(keeper)
        os.close(keeper)
        os.waitpid(self._keeper, 0)
        self.closed.set_result(None)
