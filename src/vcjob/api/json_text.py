"""JSON out of requests: decoded within bounds, whatever was sent."""

from typing import Any

import msgspec

from vcjob.api.errors import VcjobError

MOST_DEPTH = 100
"""No object of the API is as deep, and Python can walk through what is."""


class UnreadableJson(VcjobError):
    """A text that is no JSON, or nested too deep."""


def decode_json(text: bytes, most_depth: int = MOST_DEPTH) -> Any:
    """The value of a JSON text; raises UnreadableJson."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableJson(f"is no JSON: {error}") from error
    except RecursionError as error:
        raise _too_deep(most_depth) from error
    # Most texts have so few brackets that no walk through them is needed.
    if text.count(b"{") + text.count(b"[") > most_depth and _is_deeper(value, most_depth):
        raise _too_deep(most_depth)
    return value


def _too_deep(levels: int) -> UnreadableJson:
    return UnreadableJson(f"has more than {levels} levels")


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    if levels <= 0:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(_is_deeper(item, levels - 1) for item in inner)
