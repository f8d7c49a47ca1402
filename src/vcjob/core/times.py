"""Points in time: seconds since 1970 (UTC) inside vcjob, RFC 3339 text in objects."""

from datetime import UTC, datetime, timedelta


def timestamp(seconds: float) -> str:
    """A point in time as the Kubernetes API writes it, to the second: ``2026-01-31T12:00:00Z``."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """A point in time as Leases want it: Go's reader of them insists on six places."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float | None:
    """The point in time that an RFC 3339 text means, or None if it means none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def duration_of(seconds: float) -> timedelta:
    """A number of seconds as a duration."""
    return timedelta(seconds=seconds)


def short_duration(seconds: float) -> str:
    """A duration as Kubernetes' tables show it, two units at most: ``45s``, ``3m20s``, ``2d``."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
