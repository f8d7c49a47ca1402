"""Small helpers of the pod template rules."""

from collections.abc import Iterable, Iterator

from vcjob.api.problems import Path, Problem
from vcjob.api.schema.fields import name_of
from vcjob.api.types import Object


def exactly_one(value: Object, names: Iterable[str], path: Path) -> Iterator[Problem]:
    """A problem unless just one of the fields ``names`` is given."""
    choices = list(names)
    given = [name for name in choices if name in value]
    if len(given) != 1:
        what = " and ".join(given) or "none of them"
        yield Problem(
            f"{name_of(path)} must have one of {', '.join(choices)}, but has {what}", path
        )


def needs_text(value: Object, name: str, path: Path, hint: str = "") -> Iterator[Problem]:
    """A problem unless ``value`` has the text ``name``, which the schema does not demand."""
    if not value.get(name):
        yield Problem(f'{name_of(path)} lacks the field "{name}"', (*path, name), hint)


def twice(first: Path, second: Path, what: str) -> Problem:
    """Two parts of a pod agree in something that must differ."""
    return Problem(
        f"{name_of(second)} has the same {what} as {name_of(first)}",
        second,
        "each must be different",
    )
