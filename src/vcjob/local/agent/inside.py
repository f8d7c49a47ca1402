"""Running a program inside a running container to its end: for exec probes and hooks."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

import msgspec

from vcjob.local.agent.stdin import Stdin
from vcjob.local.agent.surroundings import Node
from vcjob.local.agent.terminal import Terminal
from vcjob.local.node.client import NodeRefused

MOST_OUTPUT_BYTES = 10 * 1024
"""What is kept of a program's output, as kubelet does."""


class Outcome(msgspec.Struct, frozen=True):
    """How a program inside ended: its exit code and what it printed first, as plain text."""

    exit_code: int
    output: str = ""

    @property
    def message(self) -> str:
        """In words, for an Event."""
        said = f": {self.output}" if self.output else ""
        return f"exit code {self.exit_code}{said}"


class Inside(msgspec.Struct, frozen=True):
    """A run of a container that programs can enter, with the container's own environment.

    ``stdin`` is its standard input or terminal, if it asked for one.
    """

    node: Node
    run: str
    environment: Mapping[str, str]
    directory: str = "/"
    stdin: Stdin | Terminal | None = None

    async def execute(self, command: Sequence[str], timeout: float | None) -> Outcome:
        """Run a program to its end; killed when cancelled or after ``timeout`` seconds.

        Raises TimeoutError, NodeRefused (the container does not run), NodeGone.
        """
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writer, True)
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        output = _FirstBytes(reader)
        try:
            try:
                entry = await self.node.enter(
                    self.run,
                    command,
                    null,
                    writer,
                    writer,
                    environment={**self.environment, "PWD": self.directory},
                    directory=self.directory,
                )
            finally:
                os.close(writer)
                os.close(null)
            try:
                async with asyncio.timeout(timeout):
                    exited = await asyncio.shield(entry.exited)
            except (TimeoutError, asyncio.CancelledError):
                with contextlib.suppress(NodeRefused):
                    await self.node.signal_entry(entry, signal.SIGKILL)
                raise
            return Outcome(exited.exit_code, exited.error or output.text())
        finally:
            output.close()


class _FirstBytes:
    """Takes what a pipe brings, and keeps its beginning."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._kept = bytearray()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pipe, self._read)

    def _read(self) -> bool:
        try:
            data = os.read(self._pipe, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._pipe)
        self._kept += data[: MOST_OUTPUT_BYTES - len(self._kept)]
        return bool(data)

    def text(self) -> str:
        """What was kept, without control characters; a child may hold the pipe open still."""
        while len(self._kept) < MOST_OUTPUT_BYTES and self._read():
            pass
        text = self._kept.decode(errors="replace").strip()
        return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)

    def close(self) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
