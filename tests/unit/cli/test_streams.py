"""What a terminal gets to see of a program in a pod."""

import io
import sys

import pytest

from vcjob.cli.streams import SafeOutput


class Stream(io.TextIOWrapper):
    """A stream that says whether it is a terminal."""

    def __init__(self, terminal: bool) -> None:
        self.raw_bytes = io.BytesIO()
        super().__init__(self.raw_bytes)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "raw", "expected"),
    [
        (False, False, b"a\x1b[2Jb \xff \xc3\xa9\n"),
        (True, True, b"a\x1b[2Jb \xff \xc3\xa9\n"),
        (True, False, b"ab \\xff \xc3\xa9\n"),
    ],
    ids=["pipe", "terminal asked for", "terminal"],
)
def test_escapes_reach_a_terminal_only_when_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, raw: bool, expected: bytes
) -> None:
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    output = SafeOutput(err=False, raw=raw)
    for piece in (b"a\x1b[2Jb \xff \xc3", b"\xa9\n"):
        output.write(piece)
    assert stream.raw_bytes.getvalue() == expected
