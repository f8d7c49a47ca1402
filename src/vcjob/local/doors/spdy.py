"""The frames of SPDY/3.1 that forwarding ports needs: from bytes to what they say, and back. Pure.

kubectl opens a WebSocket to forward ports and speaks SPDY inside it (Kubernetes KEP-4006); there is
no other protocol that it takes. The libraries for it are not maintained (spdy-py 0.2.0 is of 2021,
python-spdylay needs a C library of 2014), so this is what is needed of it and no more: the frames
below, and header blocks. Windows are not kept, as kubectl's own library keeps none.

Source: "SPDY Protocol, Draft 3.1" (chromium.org), sections 2.2 and 2.6.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum

import msgspec

from vcjob.api.errors import VcjobError

FIN = 0x01
_CONTROL = 0x8000
_VERSION = 3
_HEAD_BYTES = 8
_MOST_BYTES = 1 << 20
"""In one frame: peers send some 32 KiB."""
_MOST_HEADER_BYTES = 64 * 1024


class _Kind(IntEnum):
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GOAWAY = 7
    HEADERS = 8


class Malformed(VcjobError):
    """Bytes that are no SPDY/3.1; the connection is to be ended."""


class Opened(msgspec.Struct, frozen=True):
    """A peer opens a stream; ``headers`` have names in small letters."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool = False


class Data(msgspec.Struct, frozen=True):
    """Bytes of a stream; ``is_last``: its sender sends no more."""

    stream: int
    data: bytes
    is_last: bool = False


class Reset(msgspec.Struct, frozen=True):
    """A stream is over, both ways."""

    stream: int


class Ping(msgspec.Struct, frozen=True):
    """To be answered with the same number."""

    number: int


class GoAway(msgspec.Struct, frozen=True):
    """The peer opens no more streams."""


Frame = Opened | Data | Reset | Ping | GoAway


class Reader:
    """Makes frames of bytes in whatever pieces they come; other frames are passed over."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes; raises Malformed."""
        self._waiting += data
        while len(self._waiting) >= _HEAD_BYTES:
            first, second = struct.unpack_from(">II", self._waiting)
            flags, length = second >> 24, second & 0xFFFFFF
            if length > _MOST_BYTES:
                raise Malformed(f"a frame of {length} bytes is too big")
            if len(self._waiting) < _HEAD_BYTES + length:
                return
            content = bytes(self._waiting[_HEAD_BYTES : _HEAD_BYTES + length])
            del self._waiting[: _HEAD_BYTES + length]
            if first >> 31 == 0:
                yield Data(first, content, bool(flags & FIN))
                continue
            if first >> 16 != _CONTROL | _VERSION:
                raise Malformed("a frame is not of SPDY/3.1")
            frame = self._control(first & 0xFFFF, flags, content)
            if frame:
                yield frame

    def _control(self, kind: int, flags: int, content: bytes) -> Frame | None:
        try:
            match kind:
                case _Kind.SYN_STREAM:
                    (stream,) = struct.unpack_from(">I", content)
                    headers = self._headers(content[10:])
                    return Opened(stream & 0x7FFFFFFF, headers, bool(flags & FIN))
                case _Kind.SYN_REPLY | _Kind.HEADERS:
                    self._headers(content[4:])  # all headers are one compressed stream
                case _Kind.RST_STREAM:
                    (stream,) = struct.unpack_from(">I", content)
                    return Reset(stream & 0x7FFFFFFF)
                case _Kind.PING:
                    return Ping(*struct.unpack_from(">I", content))
                case _Kind.GOAWAY:
                    return GoAway()
        except struct.error as error:
            raise Malformed("a frame is too short") from error
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, _MOST_HEADER_BYTES)
        except zlib.error as error:
            raise Malformed(f"headers cannot be read: {error}") from error
        if self._inflate.unconsumed_tail:
            raise Malformed(f"headers have more than {_MOST_HEADER_BYTES} bytes")
        (count,) = struct.unpack_from(">I", plain)
        texts, at = [], 4
        for _ in range(2 * count):
            (length,) = struct.unpack_from(">I", plain, at)
            text = plain[at + 4 : at + 4 + length]
            if len(text) < length:
                raise Malformed("headers end early")
            texts.append(text.decode("utf-8", "replace"))
            at += 4 + length
        return {name.lower(): value for name, value in zip(texts[::2], texts[1::2], strict=True)}


class Writer:
    """Makes bytes of frames, in the order in which they are sent."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def opened(self, stream: int, headers: Mapping[str, str]) -> bytes:
        """SYN_STREAM: open a stream."""
        head = struct.pack(">IIBB", stream, 0, 0, 0)
        return _framed(_Kind.SYN_STREAM, head + self._headers(headers))

    def reply(self, stream: int) -> bytes:
        """SYN_REPLY: a stream that the peer has opened is taken."""
        return _framed(_Kind.SYN_REPLY, struct.pack(">I", stream) + self._headers({}))

    def reset(self, stream: int, status: int) -> bytes:
        """RST_STREAM: end a stream."""
        return _framed(_Kind.RST_STREAM, struct.pack(">II", stream, status))

    def ping(self, number: int) -> bytes:
        """PING, or the answer to one."""
        return _framed(_Kind.PING, struct.pack(">I", number))

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        """Bytes of a stream."""
        return struct.pack(">II", stream, (FIN if is_last else 0) << 24 | len(data)) + data

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for pair in headers.items():
            for text in pair:
                plain += struct.pack(">I", len(text.encode())) + text.encode()
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def _framed(kind: int, content: bytes) -> bytes:
    return struct.pack(">HHI", _CONTROL | _VERSION, kind, len(content)) + content


def _dictionary() -> bytes:
    """What header blocks are compressed with: words behind their lengths, then a text."""
    names = (
        "options head post put delete trace accept accept-charset accept-encoding "
        "accept-language accept-ranges age allow authorization cache-control connection "
        "content-base content-encoding content-language content-length content-location "
        "content-md5 content-range content-type date etag expect expires from host if-match "
        "if-modified-since if-none-match if-range if-unmodified-since last-modified location "
        "max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after "
        "server te trailer transfer-encoding upgrade user-agent vary via warning "
        "www-authenticate method get status"
    )
    others = (
        "200 OK",
        "version",
        "HTTP/1.1",
        "url",
        "public",
        "set-cookie",
        "keep-alive",
        "origin",
    )
    words = (*names.split(), *others)
    text = (
        "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
        "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
        "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
        "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
        "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
        "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
    )
    return b"".join(struct.pack(">I", len(w)) + w.encode() for w in words) + text.encode()


DICTIONARY = _dictionary()
