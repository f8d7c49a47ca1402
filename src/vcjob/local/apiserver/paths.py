"""What a path of the API names."""

from urllib.parse import unquote

import msgspec

from vcjob.local.apiserver.resources import Key
from vcjob.local.apiserver.status import Refused

_LONGEST = 8192


class Place(msgspec.Struct, frozen=True):
    """A resource, or an object of it (with ``name``), or a part of that (``subresource``).

    ``namespace`` is "" for all namespaces and for kinds without.
    """

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """What the resource is found by."""
        return self.group, self.version, self.plural


def split(raw: str) -> tuple[str, ...]:
    """The segments of a path as sent (without the query); raises Refused (400).

    A segment that means something else to a file system or after another decoding is no name.
    """
    if len(raw) > _LONGEST or not raw.startswith("/"):
        raise Refused(400, "the path of the request is not one of the API")
    segments = tuple(unquote(part, errors="strict") if "%" in part else part
                     for part in raw.strip("/").split("/"))  # fmt: skip
    for segment in segments:
        if segment in (".", "..") or "/" in segment or "%" in segment or not segment.isprintable():
            raise Refused(400, f"the path of the request has a part that is no name: {segment!r}")
    return () if segments == ("",) else segments


def place_of(segments: tuple[str, ...]) -> Place | None:
    """What segments below ``/api`` or ``/apis`` name; None if they name no resource."""
    match segments:
        case ("api", "v1", *rest) if rest:
            group, version = "", "v1"
        case ("apis", group, version, *rest) if rest:
            pass
        case _:
            return None
    if "" in rest:
        return None
    match rest:
        case ["namespaces", namespace, plural, *more] if plural not in ("status", "finalize"):
            return _object(group, version, plural, namespace, more)
        case [plural, *more]:
            return _object(group, version, plural, "", more)
    return None


def _object(group: str, version: str, plural: str, namespace: str, more: list[str]) -> Place:
    name = more[0] if more else ""
    return Place(group, version, plural, namespace, name, "/".join(more[1:]))
