"""What one scalar of a YAML file means, the way the Kubernetes tools read it.

They follow YAML 1.1 as Go's yaml.v2 does (sigs.k8s.io/yaml): ``yes``, ``no``, ``on``, ``off``,
``y`` and ``n`` are booleans, ``0755`` is octal, but ``1:30`` is a text and so is a date. A float
without a fraction becomes a whole number on the way through JSON.
"""

import math
import re

from vcjob.api.errors import VcjobError

Scalar = str | int | float | bool | None

_TAGS = "tag:yaml.org,2002:"
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE"), True),
    **dict.fromkeys(("on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE"), False),
    **dict.fromkeys(("off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_IN_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)"
    r"|0[oO]?(?P<octal>[0-7]+)|(?P<decimal>0|[1-9][0-9]*))",
    re.ASCII,
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_STARTS_LIKE_NUMBER = re.compile(r"[-+.0-9]", re.ASCII)
# No number that means anything is longer; Python would take long to read one of a megabyte.
_LONGEST_NUMBER = 100
_LARGEST_WHOLE_FLOAT = 1e21


class UnreadableScalar(VcjobError):
    """A scalar that cannot become JSON, or that contradicts its own tag."""


def read_scalar(text: str, *, plain: bool, tag: str | None) -> Scalar:
    """The JSON value of a scalar.

    ``plain`` says that it stands there without quotes, ``tag`` which type it claims to have (None:
    none). Raises UnreadableScalar.
    """
    if tag is None:
        return _read_plain(text) if plain else text
    if tag in ("!", f"{_TAGS}str", f"{_TAGS}timestamp"):
        return text
    value = _read_plain(text)
    if tag == f"{_TAGS}float" and type(value) is int:
        return value
    expected = {"int": int, "float": float, "bool": bool, "null": type(None)}
    name = tag.removeprefix(_TAGS)
    if name not in expected or not tag.startswith(_TAGS):
        raise UnreadableScalar(f"the tag {_show(tag)} has no meaning in a manifest")
    if type(value) is not expected[name]:
        raise UnreadableScalar(f"{text!r} is not of the type !!{name} that its tag claims")
    return value


def read_key(text: str, *, plain: bool, tag: str | None) -> str:
    """A scalar as the key of an object: always a text. Raises UnreadableScalar."""
    value = read_scalar(text, plain=plain, tag=tag)
    if value is None:
        raise UnreadableScalar("a key must not be empty")
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _read_plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if not _STARTS_LIKE_NUMBER.match(text) or len(text) > _LONGEST_NUMBER:
        return text
    if _NOT_IN_JSON.fullmatch(text):
        raise UnreadableScalar(f"{text} is not a number that an API object can hold")
    return _read_number(text)


def _read_number(text: str) -> Scalar:
    digits = text.replace("_", "")
    if whole := _INTEGER.fullmatch(digits):
        base = next(name for name in _BASES if whole[name] is not None)
        number = int(whole[base], _BASES[base])
        return -number if whole["sign"] == "-" else number
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        if math.isinf(value):
            return text
        return int(value) if value.is_integer() and abs(value) < _LARGEST_WHOLE_FLOAT else value
    return text


def _show(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAGS)}" if tag.startswith(_TAGS) else tag
