"""Parameters of requests, read once and checked.

Source: Kubernetes API reference, "Common Parameters".
"""

from collections.abc import Mapping

from vcjob.local.apiserver.status import Refused

Query = Mapping[str, str]

_TRUE = ("true", "1", "")
_FALSE = ("false", "0")
_LONGEST_MANAGER = 128  # bytes


def flag(query: Query, name: str) -> bool | None:
    """A parameter that is true or false (None: not given); raises Refused (400)."""
    value = query.get(name)
    if value is None:
        return None
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise Refused(400, f"{name} must be true or false, not {value[:60]!r}")


def count(query: Query, name: str) -> int | None:
    """A whole number of at least 0 (None: not given); raises Refused (400)."""
    value = query.get(name)
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 18:
        raise Refused(400, f"{name} must be a whole number, not {value[:60]!r}")
    return int(value)


def version(query: Query) -> int | None:
    """``resourceVersion`` (None: not given); raises Refused (400)."""
    return count(query, "resourceVersion")


def choice(query: Query, name: str, *values: str) -> str:
    """One of ``values``, or "" where it is not given; raises Refused (422)."""
    value = query.get(name, "")
    if value and value not in values:
        raise Refused(422, f"{name} must be one of {', '.join(values)}, not {value[:60]!r}")
    return value


def is_dry_run(query: Query) -> bool:
    """Whether nothing is to be stored; raises Refused (422)."""
    return choice(query, "dryRun", "All") == "All"


def field_manager(query: Query) -> str:
    """Who writes, as the request names it ("": it does not); raises Refused (422)."""
    name = query.get("fieldManager", "")
    if len(name.encode(errors="replace")) > _LONGEST_MANAGER or not name.isprintable():
        raise Refused(
            422,
            f"fieldManager must have at most {_LONGEST_MANAGER} bytes and only printable "
            f"characters, unlike {name[:60]!r}",
        )
    return name
