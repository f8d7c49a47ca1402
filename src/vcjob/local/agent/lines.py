"""Bytes into lines: pure."""

LONGEST_LINE = 16 * 1024
"""Longer lines are split, in bytes, as container runtimes do: memory must not fill with one."""


class LineSplitter:
    """Cuts a stream of bytes into lines, whatever chunks it comes in."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes, without their newlines."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) <= self._longest and all(len(line) <= self._longest for line in lines):
            return lines
        lines = [part for line in lines for part in self._parts(line)]
        *full, self._rest = self._parts(self._rest)
        return lines + full

    def end(self) -> list[bytes]:
        """What is left when the stream has ended: a last line that lacks its newline."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []

    def _parts(self, line: bytes) -> list[bytes]:
        step = self._longest
        return [line[at : at + step] for at in range(0, len(line), step)] or [b""]
