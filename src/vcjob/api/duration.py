"""Durations as Go writes them (``1h30m``, ``500ms``): policies' timeouts, job's running duration.

Source: Go's ``time.ParseDuration`` and ``Duration.String``, which the Kubernetes API's
``metav1.Duration`` uses.
"""

import re
from datetime import timedelta

from vcjob.api.errors import VcjobError

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_MOST_NANOSECONDS = 2**63 - 1
_LONGEST_TEXT = 200


class InvalidDuration(VcjobError):
    """A text that is no Go duration."""


def parse_duration(text: str) -> timedelta:
    """The duration that ``text`` means, to the microsecond (a timedelta knows no shorter time).

    Raises InvalidDuration if ``text`` is not a Go duration or passes 292 years.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return timedelta(0)
    nanoseconds = 0
    position = 0
    while position < len(rest) <= _LONGEST_TEXT:
        part = _PART.match(rest, position)
        if not part:
            break
        whole, _, fraction = part[1].partition(".")
        unit = _NANOSECONDS[part[2]]
        nanoseconds += int(whole or "0") * unit
        if fraction:
            nanoseconds += int(fraction) * unit // 10 ** len(fraction)
        position = part.end()
    if not rest or position < len(rest):
        raise InvalidDuration(f"{text[:_LONGEST_TEXT]!r} is not a duration")
    if nanoseconds > _MOST_NANOSECONDS:
        raise InvalidDuration(f"{text!r} is longer than 292 years")
    duration = timedelta(microseconds=nanoseconds // 1_000)
    return -duration if text[0] == "-" else duration


def format_duration(duration: timedelta) -> str:
    """The duration as Go prints it: ``1h30m0s``, ``1.5s``, ``20ms``, ``0s``."""
    microseconds = duration // timedelta(microseconds=1)
    sign = "-" if microseconds < 0 else ""
    microseconds = abs(microseconds)
    if microseconds == 0:
        return "0s"
    if microseconds < 1_000:
        return f"{sign}{microseconds}\u00b5s"
    if microseconds < 1_000_000:
        return f"{sign}{_decimal(microseconds, 1_000)}ms"
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 1_000_000)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else str(whole)
