"""The streams of a program that is run for a client."""

import os

from vcjob.local.agent.pipes import End


class Streams:
    """The streams of one program: the ends that it gets, and ours.

    ``given`` are descriptors for its standard input, output and errors. Without a terminal a
    stream that is not wanted is /dev/null; with one, all three are the terminal.
    """

    def __init__(self, *, stdin: bool, stdout: bool, stderr: bool, terminal: bool) -> None:
        self.stdin: End | None = None
        self.stdout: End | None = None
        self.stderr: End | None = None
        self.is_terminal = terminal
        self._opened: list[int] = []
        try:
            if terminal:
                master, slave = os.openpty()
                self._opened.append(slave)
                self.stdin = self.stdout = End(master)
                self.given = (slave, slave, slave)
            else:
                null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                self._opened.append(null)
                self.given = (
                    self._input() if stdin else null,
                    self._output("stdout") if stdout else null,
                    self._output("stderr") if stderr else null,
                )
        except OSError:
            self.close()
            raise

    def close_given(self) -> None:
        """The program has its ends."""
        for fd in self._opened:
            os.close(fd)
        self._opened.clear()

    def close(self) -> None:
        """Close everything."""
        self.close_given()
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
