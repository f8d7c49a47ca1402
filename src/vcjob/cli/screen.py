"""Where the output of a run goes: plain lines, or a terminal with a live status line below them.

Pods' output goes to standard output, what vcjob itself says to standard error (on a terminal both
stand above the status line).
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Generic, Protocol, Self, TextIO, TypeVar, cast

from vcjob.cli.podtext import colour_of, decode, for_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_REDRAWS_A_SECOND = 8

F = TypeVar("F", bound=IO[str] | IO[bytes])


class Screen(Protocol):
    """Shows a run. Use it as a context manager; on leaving, everything has been written.

    ``broken`` says why nothing can be shown any more (the reader is gone, the disk is full);
    ``on_terminal``: then it is the terminal that is gone.
    """

    on_terminal: bool

    @property
    def broken(self) -> str:
        """Why nothing can be shown any more, empty as long as it can."""

    def __enter__(self) -> Self:
        """Start drawing."""

    def __exit__(self, *exception: object) -> None:
        """Write what is left and stop drawing."""

    def pod_line(self, label: str, line: bytes) -> None:
        """Show one line (without its newline) of a pod's output."""

    def note(self, text: str) -> None:
        """Show a sentence of vcjob's own."""

    def status(self, text: str) -> None:
        """Replace the live status; where there is none, say it only if ``text`` is new."""

    def result(self, lines: list[str]) -> None:
        """Show the summary."""

    def flush(self) -> None:
        """Hand what was shown so far to the operating system."""


def open_screen(label_width: int) -> Screen:
    """A live screen where standard output is a terminal that can redraw, else plain lines."""
    if sys.stdout.isatty():
        from rich.console import Console

        output = _Breakable(sys.stdout)
        file = cast(IO[str], _Unbreakable(output))
        console = Console(file=file, highlight=False, markup=False, emoji=False)
        if not console.is_dumb_terminal:
            return _LiveScreen(console, output, label_width)
    return _PlainScreen(label_width)


class _Breakable(Generic[F]):
    """An output that may go at any time; what is written to it then is dropped."""

    def __init__(self, file: F) -> None:
        self.broken = ""
        self.file = file

    @contextlib.contextmanager
    def writing(self) -> Iterator[F]:
        """While the block runs, errors of writing say that it is broken."""
        try:
            yield self.file
        except OSError as error:
            self.broken = f"output cannot be written: {error.strerror}"
            self._send_nowhere()

    def _send_nowhere(self) -> None:
        """What is buffered would fail again at each flush, the last time at Python's exit."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


class _PlainScreen:
    """Lines only: pods' bytes as they are behind their label, for files, pipes and CI."""

    def __init__(self, label_width: int) -> None:
        self._width = label_width
        self._output = _Breakable(sys.stdout.buffer)
        self.on_terminal = sys.stdout.buffer.isatty()

    @property
    def broken(self) -> str:
        return self._output.broken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.flush()

    def pod_line(self, label: str, line: bytes) -> None:
        with self._output.writing() as output:
            output.write(f"{label:<{self._width}} | ".encode() + line + b"\n")

    def note(self, text: str) -> None:
        self.flush()
        # Nobody hears us where standard error is closed, full or a terminal that is gone; the run
        # goes on without notes.
        with contextlib.suppress(OSError):
            print(f"vcjob: {text}", file=sys.stderr, flush=True)

    def status(self, text: str) -> None:
        """Nothing: a file is not redrawn. Phase changes are told by ``note``."""

    def result(self, lines: list[str]) -> None:
        with self._output.writing() as output:
            output.write("".join(f"{line}\n" for line in lines).encode())
        self.flush()

    def flush(self) -> None:
        with self._output.writing() as output:
            output.flush()


class _Unbreakable(io.TextIOBase):
    """A terminal to write to that may go at any time, also while another thread redraws it."""

    def __init__(self, terminal: _Breakable[TextIO]) -> None:
        self._terminal = terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has it writable; it is not
        """That of the terminal."""
        return self._terminal.file.encoding

    def isatty(self) -> bool:
        """Whether it was a terminal when we began."""
        return True

    def fileno(self) -> int:
        """The terminal's descriptor."""
        return self._terminal.file.fileno()

    def write(self, text: str) -> int:
        """Write to the terminal as long as it is there."""
        with self._terminal.writing() as terminal:
            terminal.write(text)
        return len(text)

    def flush(self) -> None:
        """Have the terminal show it."""
        with self._terminal.writing() as terminal:
            terminal.flush()


class _LiveScreen:
    """A terminal: coloured labels, and one status line that stays below the output."""

    on_terminal = True

    def __init__(self, console: "Console", output: _Breakable[TextIO], label_width: int) -> None:
        from rich.live import Live
        from rich.text import Text

        self._output = output
        self._text = Text
        self._console = console
        self._width = label_width
        self._waiting: list[Text] = []
        self._live = Live(
            Text(""), console=console, refresh_per_second=_REDRAWS_A_SECOND, transient=True
        )

    @property
    def broken(self) -> str:
        return self._output.broken

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.flush()
        self._live.stop()

    def pod_line(self, label: str, line: bytes) -> None:
        text = self._text()
        text.append(f"{label:<{self._width}} | ", style=colour_of(label))
        text.append_text(self._text.from_ansi(for_terminal(decode(line))))
        self._waiting.append(text)

    def note(self, text: str) -> None:
        self.flush()
        self._print(self._text(f"vcjob: {for_terminal(text)}", style="dim"))

    def status(self, text: str) -> None:
        line = self._text(for_terminal(text), style="bold", no_wrap=True, overflow="ellipsis")
        self._live.update(line)

    def result(self, lines: list[str]) -> None:
        self.flush()
        self._live.stop()
        for number, line in enumerate(lines):
            self._print(self._text(for_terminal(line), style="" if number else "bold"))

    def flush(self) -> None:
        if self._waiting:
            # One print for many lines: a redraw costs as much as dozens of lines.
            self._print(self._text("\n").join(self._waiting))
            self._waiting.clear()

    def _print(self, text: "Text") -> None:
        self._console.print(text, soft_wrap=True)
