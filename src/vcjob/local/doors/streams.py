"""The streams of a program that is run for a client."""

import os
import socket

from vcjob.local.agent.pipes import End
from vcjob.local.node.receiving_terminals import receive_terminal


class Streams:
    """The streams of one program: the ends that it gets, and ours.

    ``given`` are descriptors for its standard input, output and errors, or with a terminal for
    getting it from there. A stream that is not wanted is /dev/null.
    """

    def __init__(self, *, stdin: bool, stdout: bool, stderr: bool, terminal: bool) -> None:
        self.stdin: End | None = None
        self.stdout: End | None = None
        self.stderr: End | None = None
        self.is_terminal = terminal
        self._opened: list[int] = []
        self._terminal: socket.socket | None = None
        try:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            self._opened.append(null)
            if terminal:
                self._terminal, theirs = socket.socketpair()
                self._opened.append(theirs.detach())
                self._terminal.setblocking(False)
                self.given = (self._opened[-1], null, null)
            else:
                self.given = (
                    self._input() if stdin else null,
                    self._output("stdout") if stdout else null,
                    self._output("stderr") if stderr else null,
                )
        except OSError:
            self.close()
            raise

    async def started(self) -> None:
        """The program starts, and has its ends: wait for the terminal if it gets one."""
        self.close_given()
        if self._terminal and (master := await receive_terminal(self._terminal)) is not None:
            self.stdin = self.stdout = End(master)

    def close_given(self) -> None:
        """Give up the program's ends."""
        for fd in self._opened:
            os.close(fd)
        self._opened.clear()

    def close(self) -> None:
        """Close everything."""
        self.close_given()
        if self._terminal:
            self._terminal.close()
        for end in (self.stdin, self.stdout, self.stderr):
            if end:
                end.close()

    def _input(self) -> int:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        self.stdin = End(writer)
        self._opened.append(reader)
        return reader

    def _output(self, name: str) -> int:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        setattr(self, name, End(reader))
        self._opened.append(writer)
        return writer
