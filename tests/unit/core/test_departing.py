"""The end of what a Job says while it is restarted or stopped: put on, and taken off again."""

import pytest

from vcjob.core.departing import (
    UNTIL_RESUMED,
    cannot_go_on,
    departing,
    to_be_admitted,
    why_departing,
    with_end,
)

WHY = 'a Command asked for AbortJob: waiting for 3 pods; "q"; enough'


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (departing(0, iter([]), to="end"), ""),
        (departing(1, iter(["j-w-0"]), to="end"), "waiting for 1 pod to end: j-w-0"),
        (departing(3, iter("abc"), to="go"), "waiting for 3 pods to go: a, b, c"),
        (departing(40, iter("abcd"), to="go"), "waiting for 40 pods to go: a, b, c, …"),
        (to_be_admitted("q"), 'waiting to be admitted by the queue "q"'),
        (UNTIL_RESUMED, "it goes on when it is resumed"),
        (cannot_go_on("no; really"), "it cannot go on: no; really"),
    ],
)
def test_every_end_can_be_taken_off(end: str, words: str) -> None:
    assert end == words
    for why in (WHY, ""):
        assert why_departing(with_end(why, end)) == why
    assert with_end(WHY, end) == (f"{WHY}; {words}" if words else WHY)
