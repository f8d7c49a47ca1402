"""Standard input and output of commands that talk with a program in a pod."""

import asyncio
import codecs
import contextlib
import os
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncIterator, Iterator

from vcjob.cli.podtext import for_terminal

_AT_ONCE = 32 * 1024


async def standard_input() -> AsyncIterator[bytes]:
    """What comes on standard input, whatever it is: a terminal, a pipe or a file."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue(1)

    def read() -> None:
        # A thread that nobody waits for: a read from a terminal cannot be called off.
        with contextlib.suppress(RuntimeError):  # the loop has ended
            piece = b"-"
            while piece:
                try:
                    piece = os.read(sys.stdin.fileno(), _AT_ONCE)
                except OSError:  # it was closed
                    piece = b""
                asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()

    threading.Thread(target=read, daemon=True, name="standard input").start()
    while piece := await pieces.get():
        yield piece


async def terminal_sizes() -> AsyncIterator[tuple[int, int]]:
    """(columns, rows) of the terminal, now and after each change."""
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            changed.clear()
            size = shutil.get_terminal_size()
            yield size.columns, size.lines
            await changed.wait()
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    """Every key goes to the program in the pod, until the block ends."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class SafeOutput:
    """Writes a pod's bytes to a stream: as they are, or on a terminal what it may obey.

    ``raw`` passes everything: who asked for a terminal in the pod means its escapes too.
    """

    def __init__(self, *, err: bool, raw: bool) -> None:
        stream = sys.stderr if err else sys.stdout
        self._stream = stream.buffer
        self._filtered = stream.isatty() and not raw
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, content: bytes) -> None:
        """Write and hand to the operating system at once."""
        if self._filtered:
            text = self._decoder.decode(content)
            content = "\n".join(for_terminal(line) for line in text.split("\n")).encode()
        self._stream.write(content)
        self._stream.flush()
