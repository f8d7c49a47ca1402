"""Durations on the command line."""

import click

from vcjob.api.duration import InvalidDuration, parse_duration


class DurationType(click.ParamType[float]):
    """A duration such as ``90s``, ``10m``, ``1h30m``, or plain seconds; the value is in seconds."""

    name = "DURATION"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the text; fails with examples of what would be right."""
        try:
            return float(value)
        except ValueError:
            pass
        try:
            return parse_duration(value).total_seconds()
        except InvalidDuration as error:
            return self.fail(f"{error}; for example 90s, 10m or 1h30m", param, ctx)
