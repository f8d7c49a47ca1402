import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.doors.spdy import (
    Data,
    Frame,
    GoAway,
    Malformed,
    Opened,
    Ping,
    Reader,
    Reset,
    Writer,
)

_HEADERS = {"streamtype": "data", "port": "8080", "requestid": "0"}


def _read(data: bytes, step: int = 1 << 20) -> list[Frame]:
    reader = Reader()
    return [
        frame for at in range(0, len(data), step) for frame in reader.feed(data[at : at + step])
    ]


@given(st.integers(1, 50))
def test_frames_come_through_in_whatever_pieces(step: int) -> None:
    writer = Writer()
    sent = b"".join(
        (
            writer.opened(1, _HEADERS),
            writer.reply(1),
            writer.opened(3, {**_HEADERS, "streamtype": "error"}),
            writer.data(1, b"hello"),
            writer.ping(7),
            writer.data(1, b"", is_last=True),
            writer.reset(3, 1),
        )
    )
    assert _read(sent, step) == [
        Opened(1, _HEADERS),
        Opened(3, {**_HEADERS, "streamtype": "error"}),
        Data(1, b"hello"),
        Ping(7),
        Data(1, b"", is_last=True),
        Reset(3),
    ]


def test_a_stream_as_kubectl_opens_it() -> None:
    recorded = bytes.fromhex("8003000800000004") + b"\0\0\0\0" + bytes.fromhex("8003000700000008")
    with pytest.raises(Malformed):  # a header block that is none
        _read(recorded)
    assert _read(bytes.fromhex("8003000700000008") + bytes(8)) == [GoAway()]
    assert _read(bytes.fromhex("8003000400000004") + bytes(4)) == []  # SETTINGS mean nothing here


def test_names_of_headers_have_small_letters() -> None:
    (opened,) = _read(Writer().opened(1, {"streamType": "error"}))
    assert opened == Opened(1, {"streamtype": "error"})


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n" + bytes(1 << 20),
        struct.pack(">HHI", 0x8002, 1, 0),
        struct.pack(">HHI", 0x8003, 6, 2) + bytes(2),
        struct.pack(">HHI", 0x8003, 1, 14) + bytes(14),
        struct.pack(">II", 1, 0xFFFFFF),
        Writer().opened(1, {"a": "b" * 100_000}),
    ],
    ids=["http", "version", "short", "headers", "big", "bomb"],
)
def test_what_is_no_spdy_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        _read(data)


@given(st.binary(max_size=200))
def test_nothing_else_is_raised_whatever_comes(data: bytes) -> None:
    for start in (b"", struct.pack(">HHI", 0x8003, 1, 60)):
        with contextlib.suppress(Malformed):
            _read(start + data)
