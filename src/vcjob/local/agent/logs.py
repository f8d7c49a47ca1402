"""Output of containers: from pipes into files (``log_files.py``), and live to who listens.

A container writes standard output and error into one pipe, so that their order is kept. A reader
that cannot keep up pauses all pipes; the containers then wait in their writes, and nothing is lost.
"""

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable

from vcjob.local.agent.lines import LineSplitter
from vcjob.local.agent.log_files import LogFiles

_CHUNK = 64 << 10
_LARGEST_PIPE = 1 << 20
_TAIL = 4 << 10

OnLine = Callable[[str, str, str, bytes], None]
"""Called with namespace, pod, container and one line without its newline."""


class Logs:
    """The output of all containers of a run. Belongs to the running event loop."""

    def __init__(self, files: LogFiles, on_line: OnLine) -> None:
        self.files = files
        self.on_line = on_line
        self._open: dict[ContainerLog, None] = {}
        self._latest: dict[tuple[str, str], ContainerLog] = {}
        self._flowing = asyncio.Event()
        self._flowing.set()

    def open(
        self, namespace: str, pod: str, container: str, restart: int, uid: str = ""
    ) -> "ContainerLog":
        """A pipe for one run of a container of the pod with this UID.

        Raises UnsafePath, and OSError without descriptors.
        """
        log = ContainerLog(self, namespace, pod, container, restart, uid)
        self._open[log] = None
        self._latest[log.path, uid] = log
        return log

    def growing(self, path: str, uid: str) -> "asyncio.Event | None":
        """An event for when that pod has written more to that file; None if it will not any more.

        Get it before reading what is there: it is set by the next output, or the end of it.
        """
        log = self._latest.get((path, uid))
        return log.growing() if log else None

    def pause(self) -> None:
        """Read no more until ``resume``: whoever takes the lines is behind."""
        self._flowing.clear()
        for log in self._open:
            log.stop_reading()

    def resume(self) -> None:
        """Read on."""
        self._flowing.set()
        for log in self._open:
            log.read_on()

    @property
    def paused(self) -> bool:
        """Whether pipes are left to fill."""
        return not self._flowing.is_set()

    async def wait_flowing(self) -> None:
        """Wait until nothing is paused."""
        await self._flowing.wait()

    def closed(self, log: "ContainerLog") -> None:
        """A container's output has ended."""
        self._open.pop(log, None)
        if self._latest.get((log.path, log.uid)) is log:
            del self._latest[log.path, log.uid]

    def close(self) -> None:
        """Stop reading everything; what was read and not yet passed on is."""
        for log in tuple(self._open):
            log.end()


class ContainerLog:
    """The output of one run of a container.

    ``writer`` is the descriptor for the container's standard output and error; ``close_writer``
    must follow once the container has it, or has failed to start. ``path`` is the file, ``uid``
    the pod's.
    """

    def __init__(
        self, logs: Logs, namespace: str, pod: str, container: str, restart: int, uid: str
    ) -> None:
        self.path = logs.files.path(namespace, pod, container, restart, uid)
        self.uid = uid
        self._growing: asyncio.Event | None = None
        self._logs = logs
        self._source = (namespace, pod, container)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._lines = LineSplitter()
        self._tail = b""
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reader, False)
        if not logs.paused:
            self.read_on()

    def take_terminal(self, master: int) -> None:
        """Read the container's terminal in place of the pipe; owns the descriptor from now on."""
        self.close_writer()
        if self._ended.done():
            os.close(master)
            return
        self.stop_reading()
        os.close(self._reader)
        self._reader = master
        os.set_blocking(master, False)
        if not self._logs.paused:
            self.read_on()

    def growing(self) -> asyncio.Event:
        """Set by the next output, or the end of it."""
        if self._growing is None:
            self._growing = asyncio.Event()
        return self._growing

    def close_writer(self) -> None:
        """Give up our own end, so that the container's death ends the output."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    async def finished(self, patience: float = 2.0) -> None:
        """Take the rest of the output; call it when the container has exited.

        With its pid namespace dead the pipe ends at once. Should something hold it open all the
        same, what is there is taken after ``patience`` seconds and the pipe is let go.
        """
        self.close_writer()
        while not self._ended.done():
            await self._logs.wait_flowing()
            await asyncio.wait({self._ended}, timeout=patience)
            if not self._ended.done() and not self._logs.paused:
                self._take_what_is_there()
                self.end()

    def tail(self) -> bytes:
        """The last bytes of the output, at most 4 KiB."""
        return self._tail

    def termination_message(self) -> str:
        """What FallbackToLogsOnError shows: the last 80 lines, at most 2048 bytes."""
        lines = self._tail[-2048:].splitlines(keepends=True)[-80:]
        return b"".join(lines).decode(errors="replace")

    def read_on(self) -> None:
        """Watch the pipe."""
        self._loop.add_reader(self._reader, self._read)

    def stop_reading(self) -> None:
        """Leave the pipe to fill."""
        self._loop.remove_reader(self._reader)

    def end(self) -> None:
        """Pass on what is left and let the pipe go."""
        if self._ended.done():
            return
        self.stop_reading()
        os.close(self._reader)
        self.close_writer()
        self._logs.closed(self)
        self._ended.set_result(None)
        self._tell_readers()
        self._pass_on(self._lines.end())

    def _read(self) -> bool:
        """Take one chunk; False where there is none. The end of the pipe ends the log."""
        try:
            chunk = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that no program has open any more
                raise
            chunk = b""
        if not chunk:
            self.end()
            return False
        self._tail = (self._tail + chunk[-_TAIL:])[-_TAIL:]
        self._logs.files.append(self.path, chunk, self.uid)
        self._tell_readers()
        self._pass_on(self._lines.feed(chunk))
        return True

    def _tell_readers(self) -> None:
        if self._growing:
            self._growing.set()
            self._growing = None

    def _take_what_is_there(self) -> None:
        with contextlib.suppress(OSError):  # the reader may have ended the log meanwhile
            for _ in range(_LARGEST_PIPE // _CHUNK):
                if self._ended.done() or not self._read():
                    return

    def _pass_on(self, lines: list[bytes]) -> None:
        for line in lines:
            self._logs.on_line(*self._source, line)
