"""The Queues that an operator makes, on a cluster that does not let it at first."""

from typing import Any

import pytest
from faults import Faulty
from played_time import play

from vcjob.api.kinds import QUEUE
from vcjob.controller.cluster import ClusterError, Forbidden, Unavailable
from vcjob.kubernetes.first_queues import FirstQueues
from vcjob.local.store import Store

REFUSALS = (Forbidden("you may not create queues"), Unavailable("no endpoints for the webhook"))


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_what_cannot_be_made_yet_is_told_once_and_made_later(
    refusal: ClusterError, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    cluster = Faulty(Store(lambda: 1_800_000_000.0))
    made = FirstQueues()
    told: list[str] = []

    async def refuse(*_: Any) -> None:
        told.append(made.trouble)
        if len(told) == 12:
            cluster.before_create.clear()
        raise refusal

    cluster.before_create.append(refuse)
    play(made.make(cluster))
    assert told == ["", *[str(refusal)] * 11]
    assert made.trouble == ""
    assert caplog.messages == [
        f"the Queues root and default cannot be made: {refusal}",
        "the Queue root is made",
        "the Queue default is made",
    ]


def test_what_is_there_is_left_alone() -> None:
    store = Store(lambda: 1_800_000_000.0)

    async def story() -> None:
        for name in ("root", "default"):
            await store.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 7}})
        before = store.version
        await FirstQueues().make(store)
        assert store.version == before

    play(story())
