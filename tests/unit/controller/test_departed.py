"""Late news of what is gone are told from news of what only left the selection, or came back."""

import math

import pytest

from vcjob.controller.cluster import EventType
from vcjob.controller.departed import Departed

ADDED, MODIFIED = EventType.ADDED, EventType.MODIFIED


@pytest.mark.parametrize(
    ("gone_at", "event", "version", "late"),
    [
        (7, MODIFIED, 6, True),  # the answer to a write from before the deletion
        (7, ADDED, 6, True),
        (7, MODIFIED, 7, False),  # read after its label was taken away
        (7, ADDED, 9, False),  # its label was put back
        (math.inf, MODIFIED, 9, True),  # a list lacked it: nobody knows since when
        (math.inf, ADDED, 9, False),
    ],
)
def test_news_of_what_is_gone(gone_at: float, event: EventType, version: int, late: bool) -> None:
    departed = Departed()
    departed.note("pod", gone_at)
    assert departed.is_late("pod", event, version) is late
    departed.is_back("pod")
    assert not departed.is_late("pod", MODIFIED, 0)
