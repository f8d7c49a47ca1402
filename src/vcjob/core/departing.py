"""What keeps a Job that is restarted or stopped from going on, as the end of what it says.

The beginning of that, why it is restarted or stopped, lasts. The end is told anew in each pass, so
the status records how much of its message that is (``State.end``).
"""

from collections.abc import Iterable
from itertools import islice

_LISTED_PODS = 3
_BREAK = "; "
UNTIL_RESUMED = "it goes on when it is resumed"
"""The end of what a Job says that was stopped and may go on."""


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


def with_end(message: str, end: str) -> tuple[str, int]:
    """The sentence with one of these ends, and how many characters of it that end is.

    Either may be empty: what Volcano's controller has decided comes without a sentence.
    """
    whole = _BREAK.join(filter(None, (message, end)))
    return whole, len(whole) - len(message)


def without_end(message: str, length: int) -> str:
    """The sentence without an end of that many characters.

    One that somebody else has written since has none.
    """
    if length == len(message):
        return ""
    start = len(message) - length
    return message[:start] if start > 0 and message.startswith(_BREAK, start) else message
