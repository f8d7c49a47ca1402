"""The end of what a Job says while it is restarted or stopped: put on, and taken off again."""

import pytest

from vcjob.core.departing import (
    UNTIL_RESUMED,
    cannot_go_on,
    departing,
    to_be_admitted,
    with_end,
    without_end,
)

WHY = 'a Command asked for AbortJob: it cannot go on: waiting for 3 pods to end: "q"'


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
def test_every_end_can_be_taken_off_and_nothing_else(end: str, words: str) -> None:
    assert end == words
    for why in (WHY, f"{WHY}; {words}", ""):
        whole, length = with_end(why, end)
        assert whole == "; ".join(filter(None, (why, words)))
        assert without_end(whole, length) == why


@pytest.mark.parametrize("message", ["", "short", "what another controller has written"])
def test_an_end_that_is_not_there_is_not_taken_off(message: str) -> None:
    assert without_end(message, len("; waiting for 1")) == message
