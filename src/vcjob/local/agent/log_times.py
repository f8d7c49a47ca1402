"""When a container printed what: an index beside each file of output.

Files hold what containers print and nothing else. A line ``OFFSET NANOSECONDS`` of the index says
that what follows OFFSET was read then (since 1970). The first line of an index, and each where the
writer is another one, also names the writer: the UID of the pod, as a pod of the same name writes
to the same file.
"""

import os
from collections.abc import Iterator
from typing import IO

import msgspec

SUFFIX = ".times"

_FINEST = 1_000_000  # nanoseconds between two lines: a chatty program has no longer index than text


class Piece(msgspec.Struct, frozen=True):
    """What lies between two offsets of a file (``end`` None: to its end), who wrote it and when."""

    start: int
    end: int | None
    time: int
    writer: str


class TimesWriter:
    """Writes the indexes of many files."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, str]] = {}

    def note(self, path: str, offset: int, now: int, writer: str) -> int:
        """Say that ``writer`` writes to a file from ``offset`` on; returns the index's growth.

        Raises OSError.
        """
        time, before = self._last.get(path, (0, ""))
        is_new = offset == 0 or writer != before
        if not is_new and 0 <= now - time < _FINEST:
            return 0
        line = f"{offset} {now} {writer}\n" if is_new else f"{offset} {now}\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        index = os.open(path + SUFFIX, flags, 0o600)
        try:
            written = os.write(index, line.encode())
        finally:
            os.close(index)
        self._last[path] = (now, writer)
        return written

    def forget(self, path: str) -> None:
        """The file is another one, or gone."""
        self._last.pop(path, None)


class TimesReader:
    """Reads an index, also one that grows: each call goes on where the one before ended."""

    def __init__(self, index: IO[bytes]) -> None:
        self._index = index
        self._open: Piece | None = None
        self._rest = b""

    def pieces(self) -> Iterator[Piece]:
        """The pieces that are known, in order; the last one has no end, and comes again."""
        while line := self._index.readline():
            line, self._rest = self._rest + line, b""
            if not line.endswith(b"\n"):
                self._rest = line
                break
            begun = self._parsed(line)
            if begun is None:
                continue
            if self._open and self._open.start < begun.start:
                yield msgspec.structs.replace(self._open, end=begun.start)
            self._open = begun
        if self._open:
            yield self._open

    def advance(self, offset: int) -> None:
        """What lies before ``offset`` has been taken."""
        if self._open and self._open.start < offset:
            self._open = msgspec.structs.replace(self._open, start=offset)

    def _parsed(self, line: bytes) -> Piece | None:
        """A line of the index; None for what a full disk left of one."""
        try:
            offset, time, *writer = line.decode().split()
            name = writer[0] if writer else self._open.writer if self._open else ""
            return Piece(int(offset), None, int(time), name)
        except ValueError:
            return None
