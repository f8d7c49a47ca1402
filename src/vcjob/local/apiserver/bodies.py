"""Bodies of requests: read within bounds, and decoded.

Source of the bound: Kubernetes' API server takes 3 MiB.
"""

import asyncio
import json
from typing import Any

import msgspec
from aiohttp import web

from vcjob.api import json_text
from vcjob.api.json_text import UnreadableJson
from vcjob.api.manifest import parse
from vcjob.local.apiserver.negotiation import JSON
from vcjob.local.apiserver.protobuf import PROTOBUF, decode_protobuf
from vcjob.local.apiserver.status import Refused

MOST_BYTES = 3 * 1024 * 1024

_SLOWEST_SENDER = 60.0  # seconds in which a body must have come

_YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")


class Body(msgspec.Struct, frozen=True):
    """The body of a request, not yet decoded; ``sender`` is the program that sent it."""

    bytes: bytes
    type: str
    sender: str = ""


async def read_body(request: web.BaseRequest) -> bytes:
    """The body of a request; raises Refused (413: too big, 415: encoded, 408: it does not end,
    417: the client expects something else than to go on).

    Compressed bodies are not taken, as by Kubernetes: a small one could become any size.
    """
    if (encoding := request.headers.get("Content-Encoding", "identity")) != "identity":
        raise Refused(415, f"the body of the request must not be encoded ({encoding[:100]})")
    if (request.content_length or 0) > MOST_BYTES:
        raise _too_big()
    await _ask_for(request)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_SLOWEST_SENDER):
            async for piece in request.content.iter_any():
                size += len(piece)
                if size > MOST_BYTES:
                    raise _too_big()
                pieces.append(piece)
    except TimeoutError as error:
        raise Refused(408, "the body of the request did not end in time") from error
    except web.RequestPayloadError as error:
        raise Refused(400, "the body of the request is no HTTP") from error
    return b"".join(pieces)


async def _ask_for(request: web.BaseRequest) -> None:
    """Tell a client that waits for it to go on with its body; raises Refused (417)."""
    expected = request.headers.get("Expect", "")
    if expected.lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer has not begun
    elif expected:
        raise Refused(417, f"nothing here meets the expectation {expected[:100]!r}")


def media_type(request: web.BaseRequest) -> str:
    """The Content-Type of a request without its parameters; JSON if it names none."""
    return (request.headers.get("Content-Type") or JSON).split(";")[0].strip().lower()


def program(request: web.BaseRequest) -> str:
    """The name of the program that sent a request, as its User-Agent begins."""
    return request.headers.get("User-Agent", "").partition("/")[0][:128] or "unknown"


def decode_object(body: bytes, content_type: str) -> dict[str, Any]:
    """A body that must be one object; raises Refused (400, 415)."""
    if content_type in _YAML_TYPES:
        value = _decode_yaml(body)
    elif content_type == JSON:
        value = decode_json(body)
    elif content_type == PROTOBUF:
        value = decode_protobuf(body)
    else:
        raise Refused(
            415,
            f"the body of the request must be {JSON} or application/yaml, not {content_type[:100]}",
        )
    if not isinstance(value, dict):
        raise Refused(400, "the body of the request must be an object")
    return value


def decode_json(body: bytes) -> Any:
    """A JSON value; raises Refused (400)."""
    try:
        return json_text.decode_json(body)
    except UnreadableJson as error:
        raise Refused(400, f"the body of the request {error}") from error


def decode_yaml(body: bytes) -> dict[str, Any]:
    """An object out of YAML (or JSON, which is YAML); raises Refused (400)."""
    value = decode_json(body) if body.lstrip()[:1] == b"{" else _decode_yaml(body)
    if not isinstance(value, dict):
        raise Refused(400, "the body of the request must be an object")
    return value


def duplicate_keys(body: bytes) -> list[str]:
    """Keys that stand twice in one object of a JSON body, in order of appearance."""
    found: dict[str, None] = {}

    def look(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                found[key] = None
            seen.add(key)

    json.loads(body, object_pairs_hook=look)
    return list(found)


def _decode_yaml(body: bytes) -> Any:
    manifest = parse(body)
    if manifest.problems:
        raise Refused(400, f"the body of the request is no YAML: {manifest.problems[0].message}")
    if len(manifest.documents) != 1:
        raise Refused(400, "the body of the request must be one object")
    return manifest.documents[0].object


def _too_big() -> Refused:
    return Refused(413, f"the body of the request is bigger than {MOST_BYTES} bytes")
