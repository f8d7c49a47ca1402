"""What keeps a Job that is restarted or stopped from going on, as the end of what it says.

The beginning of that, why it is restarted or stopped, lasts. So the end is taken off whenever it is
told anew.
"""

import re
from collections.abc import Iterable
from itertools import islice

_LISTED_PODS = 3
UNTIL_RESUMED = "it goes on when it is resumed"
"""The end of what a Job says that was stopped and may go on."""

_ENDS = re.compile(
    r"(^|; )("
    r"waiting for \d+ pods? to (end|go): [^;]*"
    r'|waiting to be admitted by the queue "[^"]*"'
    r"|it cannot go on: .*"
    rf"|{UNTIL_RESUMED}"
    r")$"
)


def departing(count: int, names: Iterable[str], *, to: str) -> str:
    """That ``count`` pods, with these ``names``, are still ``to`` "end" or "go"."""
    if not count:
        return ""
    shown = ", ".join(islice(names, _LISTED_PODS))
    more = ", …" if count > _LISTED_PODS else ""
    return f"waiting for {count} pod{'s' if count > 1 else ''} to {to}: {shown}{more}"


def to_be_admitted(queue: str) -> str:
    """That the old pods are gone, and the new ones have not been admitted."""
    return f'waiting to be admitted by the queue "{queue}"'


def cannot_go_on(why: str) -> str:
    """That something around the Job keeps its new pods from coming."""
    return f"it cannot go on: {why}"


def with_end(message: str, end: str) -> str:
    """The sentence with one of these ends, each of which may be empty.

    What Volcano's controller has decided comes without a sentence.
    """
    return "; ".join(filter(None, (message, end)))


def why_departing(message: str) -> str:
    """The sentence without any of these ends."""
    return _ENDS.sub("", message)
