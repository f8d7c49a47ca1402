"""Did-you-mean: what somebody probably meant by a word that is not known."""

import difflib
from collections.abc import Iterable

_MOST_LISTED = 16
_MOST_COMPARED = 256
"""Each costs some microseconds, and a manifest may have thousands of words that are not known."""


def closest(word: str, known: Iterable[str]) -> str:
    """The known word most like ``word``, or empty if none is alike or there are too many."""
    by_lower_case = {item.lower(): item for item in known}
    if len(by_lower_case) > _MOST_COMPARED:
        return ""
    found = difflib.get_close_matches(word[:100].lower(), by_lower_case, n=1, cutoff=0.65)
    return by_lower_case[found[0]] if found else ""


def suggest(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown word: the closest known one, else all of them if they are few."""
    words = sorted(known)
    if best := closest(word, words):
        return f'did you mean "{best}"?'
    if words and len(words) <= _MOST_LISTED:
        return f"known here: {', '.join(words)}"
    return ""
