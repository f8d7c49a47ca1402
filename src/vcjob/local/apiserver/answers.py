"""Answers on their way out: in the form that was asked for, compressed if big, lists in parts.

An answer that is a list goes out some hundred objects at a time, so that neither ten thousand pods
nor a slow reader of them hold up other requests or fill the memory.
"""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import yaml
from aiohttp import web

from vcjob.api.types import Object
from vcjob.local.apiserver.negotiation import JSON, YAML, Media

_COMPRESSED_FROM = 128 * 1024  # bytes, as Kubernetes' API server
_FAST = 1
_GZIP_FORMAT = 31
_A_PART = 250

_encode = msgspec.json.Encoder().encode
_dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Answer(msgspec.Struct, frozen=True):
    """An object to answer with, in a media type (None: JSON); bytes are that already."""

    object: Any
    code: int = 200
    media: Media | None = None
    warnings: tuple[str, ...] = ()


class LongAnswer(msgspec.Struct, frozen=True):
    """A list: ``head`` without its last field ``field``, which is ``items``, each ``shaped``."""

    head: Object
    field: str
    items: Sequence[Object]
    shaped: Callable[[Object], Object]
    media: Media


async def send(request: web.BaseRequest, answer: Answer | LongAnswer) -> web.StreamResponse:
    """Send an answer; returns the response, finished."""
    if isinstance(answer, LongAnswer):
        if len(answer.items) > _A_PART and answer.media.type == JSON:
            return await _send_parts(request, answer)
        items = [answer.shaped(item) for item in answer.items]
        answer = Answer({**answer.head, answer.field: items}, media=answer.media)
    media = answer.media or Media()
    body = encode(answer.object, media)
    headers = {"Content-Type": media.content_type, **_COMMON}
    if len(body) >= _COMPRESSED_FROM and _takes_gzip(request):
        body = await asyncio.to_thread(gzip.compress, body, _FAST)
        headers["Content-Encoding"] = "gzip"
    response = web.Response(body=body, status=answer.code, headers=headers)
    for warning in answer.warnings:
        response.headers.add("Warning", f"299 - {quoted(warning)}")
    return response


def encode(value: Any, media: Media) -> bytes:
    """A value as JSON or YAML; bytes are encoded already."""
    if isinstance(value, bytes):
        return value
    if media.type == YAML:
        text: str = yaml.dump(value, Dumper=_dumper, allow_unicode=True, default_flow_style=False)
        return text.encode()
    return _encode(value) + b"\n"


def quoted(warning: str) -> str:
    """A text as a Warning header has it (RFC 7234): one line, in quotes."""
    plain = "".join(char if char.isprintable() else " " for char in warning)[:1024]
    safe = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'


_COMMON: Mapping[str, str] = {"Cache-Control": "no-cache, private"}


async def _send_parts(request: web.BaseRequest, answer: LongAnswer) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": answer.media.content_type, **_COMMON})
    compress = _takes_gzip(request)
    if compress:
        response.headers["Content-Encoding"] = "gzip"
    await response.prepare(request)
    parts = _parts(answer)
    async for part in _compressed(parts) if compress else _as_they_are(parts):
        await response.write(part)
    await response.write_eof()
    return response


def _parts(answer: LongAnswer) -> Iterable[bytes]:
    yield _encode(answer.head)[:-1] + b',"' + answer.field.encode() + b'":['
    comma = b""
    for start in range(0, len(answer.items), _A_PART):
        some = answer.items[start : start + _A_PART]
        yield comma + _encode([answer.shaped(item) for item in some])[1:-1]
        comma = b","
    yield b"]}\n"


async def _as_they_are(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(0)


async def _compressed(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    stream = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP_FORMAT)
    for part in parts:
        if piece := await asyncio.to_thread(stream.compress, part):
            yield piece
    yield stream.flush()


def _takes_gzip(request: web.BaseRequest) -> bool:
    return "gzip" in request.headers.get("Accept-Encoding", "")
