"""A part of a container's output out of its files, and what is added to it later.

Nothing is kept in memory but what is on its way: a slow reader reads from the file at its own pace.
The files and their indexes are written in this same thread, so that they are read in step.
"""

import asyncio
import io
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec

from vcjob.local.agent.log_times import SUFFIX, TimesReader
from vcjob.local.agent.logs import Logs

_AT_ONCE = 64 * 1024
_SECOND = 1_000_000_000


class Part(msgspec.Struct, frozen=True):
    """Which part of the output.

    ``tail`` is the number of last lines (None: all); lines older than ``since`` (nanoseconds since
    1970) are left out; ``timestamps`` puts the time before each line; ``new_only`` leaves out all
    that was printed before.
    """

    follow: bool = False
    tail: int | None = None
    since: int = 0
    timestamps: bool = False
    new_only: bool = False


async def output(logs: Logs, path: str, uid: str, part: Part) -> AsyncIterator[bytes]:
    """What the pod ``uid`` printed to the file ``path``, in pieces.

    With ``follow`` it ends when the run of the container that writes to the file has ended.
    """
    stamp = _Stamp() if part.timestamps else None
    files = _newer(path, None)
    try:
        await _begin(files, uid, part)
        while True:
            growing = logs.growing(path, uid) if part.follow else None
            while files:
                async for text in files[0].rest(uid, stamp):
                    yield text
                if len(files) == 1:
                    files += _newer(path, files[0])
                    if len(files) == 1:
                        break
                    async for text in files[0].rest(uid, stamp):  # what came before it was full
                        yield text
                files.pop(0).close()
            if growing is None:
                return
            await growing.wait()
            files = files or _newer(path, None)
    finally:
        for file in files:
            file.close()


class _File:
    """A file of output from ``offset`` on, and its index."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._text = io.FileIO(path)
        try:
            self._index = io.BufferedReader(io.FileIO(path + SUFFIX))
        except OSError:
            self._text.close()
            raise
        self._times = TimesReader(self._index)
        self.offset = 0

    @property
    def size(self) -> int:
        return os.fstat(self._text.fileno()).st_size

    @property
    def number(self) -> int:
        """What tells files apart that had the same name."""
        return os.fstat(self._text.fileno()).st_ino

    def close(self) -> None:
        self._text.close()
        self._index.close()

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self._text.fileno(), end - start, start)

    def extents(self, uid: str, since: int) -> list[tuple[int, int]]:
        """Where a pod's output lies that is not older than ``since``."""
        found: list[tuple[int, int]] = []
        with open(self.path + SUFFIX, "rb") as index:
            for piece in TimesReader(index).pieces():
                if piece.writer != uid or piece.time < since:
                    continue
                end = self.size if piece.end is None else piece.end
                if found and found[-1][1] == piece.start:
                    found[-1] = (found[-1][0], end)
                else:
                    found.append((piece.start, end))
        return found

    async def rest(self, uid: str, stamp: "_Stamp | None") -> AsyncIterator[bytes]:
        """What a pod has written behind ``offset``, which moves on."""
        waiting = bytearray()
        for piece in self._times.pieces():
            end = self.size if piece.end is None else piece.end
            start = max(piece.start, self.offset)
            while start < end and piece.writer == uid:
                data = self.read(start, min(end, start + _AT_ONCE))
                if not data:
                    break  # the file was made shorter
                start += len(data)
                self.offset = start
                waiting += stamp.put(data, piece.time) if stamp else data
                if len(waiting) >= _AT_ONCE:
                    yield bytes(waiting)
                    waiting.clear()
                    await asyncio.sleep(0)  # others get a turn although there is more
            self.offset = max(self.offset, end)
            self._times.advance(self.offset)
        if waiting:
            yield bytes(waiting)


def _newer(path: str, last: _File | None) -> list[_File]:
    """The files that came after ``last``, oldest first (None: all that there are)."""
    found: list[_File] = []
    for name in (path, f"{path}.1"):
        try:
            file = _File(name)
        except FileNotFoundError:
            continue
        if last and file.number == last.number:
            file.close()
            break
        found.insert(0, file)
    return found


async def _begin(files: list[_File], uid: str, part: Part) -> None:
    """Put files to where a part begins."""
    wanted = part.tail
    for file in reversed(files):
        file.offset = file.size
        if part.new_only or wanted == 0:
            continue
        extents = file.extents(uid, part.since)
        if not extents:
            continue
        file.offset = extents[0][0]
        if part.since:
            file.offset = _line_start(file, file.offset)
        if wanted is not None:
            is_end = wanted == part.tail
            wanted = await _put_to_tail(file, extents, wanted, is_end=is_end)


def _line_start(file: _File, offset: int) -> int:
    """The first line that begins at an offset or behind it: the one before is older."""
    if offset == 0 or file.read(offset - 1, offset) == b"\n":
        return offset
    while data := file.read(offset, offset + _AT_ONCE):
        at = data.find(b"\n")
        if at >= 0:
            return offset + at + 1
        offset += len(data)
    return offset


async def _put_to_tail(
    file: _File, extents: list[tuple[int, int]], wanted: int, *, is_end: bool
) -> int:
    """Put a file to its last ``wanted`` lines; returns how many are to come from older files.

    ``is_end``: nothing comes behind, and a newline at the end begins no further line.
    """
    for begin, end in reversed(extents):
        at = end
        while at > max(begin, file.offset):
            start = max(begin, file.offset, at - _AT_ONCE)
            data = file.read(start, at)
            search = len(data)
            if is_end and data.endswith(b"\n"):
                search -= 1
            is_end = False
            while (search := data.rfind(b"\n", 0, search)) >= 0:
                wanted -= 1
                if wanted == 0:
                    file.offset = start + search + 1
                    return 0
            at = start
            await asyncio.sleep(0)
    return wanted


class _Stamp:
    """Puts the time before each line."""

    def __init__(self) -> None:
        self._at_start = True

    def put(self, data: bytes, time: int) -> bytes:
        prefix = f"{rfc3339(time)} ".encode()
        begun = prefix if self._at_start else b""
        self._at_start = data.endswith(b"\n")
        return begun + data[:-1].replace(b"\n", b"\n" + prefix) + data[-1:]


def rfc3339(time: int) -> str:
    """Nanoseconds since 1970 as the API writes them."""
    seconds, rest = divmod(time, _SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
