"""What ConfigMaps and Secrets hold, and the one exception for what volumes and variables lack."""

import base64
import binascii
from collections.abc import Callable, Mapping

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import CONFIG_MAP, SECRET, Kind
from vcjob.api.types import Object

Find = Callable[[Kind, str], Object | None]
"""Looks an object up by kind and name in the namespace of the pod."""


class MissingReference(VcjobError):
    """A ConfigMap, Secret, claim, key or field that a pod needs and that is not there (yet)."""


class VolumeRefused(VcjobError):
    """A volume that this run will never give the pod; the sentence says why, and the cure."""


def object_data(kind: Kind, obj: Object) -> Mapping[str, bytes]:
    """All keys of a ConfigMap (``data``, ``binaryData``) or Secret (``data``, ``stringData``).

    Raises MissingReference where a value is not the base64 text it should be.
    """
    if kind == CONFIG_MAP:
        return {**_decoded(kind, obj, "binaryData"), **_plain(obj, "data")}
    return {**_decoded(kind, obj, "data"), **_plain(obj, "stringData")}


def text_data(kind: Kind, obj: Object) -> Mapping[str, str]:
    """The keys that can become environment variables: not a ConfigMap's ``binaryData``.

    Bytes that are no UTF-8 come as surrogates, which ``os.fsencode`` turns back.
    """
    if kind == CONFIG_MAP:
        return {key: str(value) for key, value in (obj.get("data") or {}).items()}
    return {
        key: value.decode(errors="surrogateescape")
        for key, value in object_data(SECRET, obj).items()
    }


def _plain(obj: Object, field: str) -> dict[str, bytes]:
    return {
        key: str(value).encode(errors="surrogateescape")
        for key, value in (obj.get(field) or {}).items()
    }


def _decoded(kind: Kind, obj: Object, field: str) -> dict[str, bytes]:
    found = {}
    for key, value in (obj.get(field) or {}).items():
        try:
            found[key] = base64.b64decode("".join(str(value or "").split()), validate=True)
        except binascii.Error as error:
            name = (obj.get("metadata") or {}).get("name", "")
            # The value itself is not shown: it may be a secret all the same.
            raise MissingReference(f'{kind} "{name}": {field}.{key} is not base64 text') from error
    return found
