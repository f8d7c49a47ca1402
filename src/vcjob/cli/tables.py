"""Tables and other text for people, out of objects whose texts are not to be trusted."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import click

from vcjob.api.problems import printable
from vcjob.core.times import seconds_of, short_duration

NONE = "<none>"
_GAP = "   "


def print_table(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print aligned columns; what terminals would obey is shown, not sent."""
    lines = [tuple(heading), *(tuple(map(shown, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        click.echo(_GAP.join(cells).rstrip())


def shown(value: Any) -> str:
    """A cell's text in one line."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(str(value))


def age(timestamp: str, now: float | None = None) -> str:
    """How long ago an RFC 3339 time was, as ``45s``, ``3m20s``, ``2h5m``, ``3d``."""
    then = seconds_of(timestamp) if timestamp else None
    if then is None:
        return "<unknown>"
    return short_duration((time.time() if now is None else now) - then)
