"""Durations on the command line."""

import re

import click

from vcjob.api.duration import InvalidDuration, parse_duration

_PLAIN_SECONDS = re.compile(r"[+-]?[0-9.]+", re.ASCII)
_EXAMPLES = "for example 90s, 10m or 1h30m"


class DurationType(click.ParamType[float]):
    """A duration such as ``90s``, ``10m``, ``1h30m``, or plain seconds; the value is in seconds.

    It is never below zero: no option means a time before now.
    """

    name = "DURATION"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the text; fails with examples of what would be right."""
        text = f"{value}s" if _PLAIN_SECONDS.fullmatch(value) else value
        try:
            seconds = parse_duration(text).total_seconds()
        except InvalidDuration as error:
            return self.fail(f"{error}; {_EXAMPLES}", param, ctx)
        if seconds < 0:
            return self.fail(f"{value!r} is less than nothing; {_EXAMPLES}", param, ctx)
        return seconds
