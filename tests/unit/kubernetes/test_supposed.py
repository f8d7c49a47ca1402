"""Queues that Jobs name, where none can be seen."""

import asyncio
from typing import Any

import pytest
from played_time import play

from vcjob.kubernetes.supposed import SupposedQueues


def job(spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": spec}


def names(queues: SupposedQueues) -> list[str]:
    return [queue["metadata"]["name"] for queue in queues.all()]


@pytest.mark.parametrize(
    ("spec", "name"),
    [({"queue": "q"}, "q"), ({}, "default"), ({"queue": ""}, "default"), (None, "default"),
     ({"queue": 3}, "default"), ([], "default")],
)  # fmt: skip
def test_the_queue_that_a_job_names_is_there_once(spec: Any, name: str) -> None:
    async def story() -> None:
        queues = SupposedQueues()
        await queues.suppose(job(spec))
        await queues.suppose(job(spec))
        assert names(queues) == [name]

    play(story())


def test_watchers_know_a_queue_before_anybody_knows_the_job() -> None:
    async def story() -> None:
        queues = SupposedQueues()
        await queues.suppose(job({"queue": "old"}))
        seen: list[str] = []

        async def follow() -> None:
            async for event in queues.watch():
                await asyncio.sleep(5)
                seen.append(event.object["metadata"]["name"])

        following = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        await queues.suppose(job({"queue": "new"}))
        assert seen == ["old", "new"]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    play(story())


def test_a_watcher_that_goes_away_keeps_nobody_waiting() -> None:
    async def story() -> None:
        queues = SupposedQueues()

        async def follow() -> None:
            async for _ in queues.watch():
                await asyncio.get_running_loop().create_future()

        following = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        supposing = [asyncio.ensure_future(queues.suppose(job({"queue": q}))) for q in "abc"]
        await asyncio.sleep(1)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await asyncio.wait_for(asyncio.gather(*supposing), 60)
        await queues.suppose(job({"queue": "d"}))
        assert names(queues) == list("abcd")

    play(story())
