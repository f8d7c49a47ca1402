"""Points in time: seconds since 1970 (UTC) inside vcjob, RFC 3339 text in objects."""

from datetime import UTC, datetime, timedelta


def timestamp(seconds: float) -> str:
    """A point in time as the Kubernetes API writes it, to the second: ``2026-01-31T12:00:00Z``."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float | None:
    """The point in time that an RFC 3339 text means, or None if it means none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def duration_of(seconds: float) -> timedelta:
    """A number of seconds as a duration."""
    return timedelta(seconds=seconds)
