"""Who cannot go on without a write waits while nothing can be stored."""

import asyncio
from typing import Any

import pytest

from vcjob.api.kinds import POD
from vcjob.controller.cluster import AlreadyExists, StorageFailed
from vcjob.local import patience
from vcjob.local.patience import PatientCluster
from vcjob.local.store import Store


class FullAtFirst:
    """A disk that takes nothing as often as it is told."""

    def __init__(self, times: int) -> None:
        self.times = times

    def write(self, version: int, writes: Any) -> list[int]:
        if self.times:
            self.times -= 1
            raise StorageFailed("no room")
        return [1 for _ in writes]


def test_writes_are_tried_until_they_are_stored_and_the_user_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "_AGAIN_SECONDS", 0.0)
    told: list[str] = []

    async def story() -> None:
        disk = FullAtFirst(3)
        there = PatientCluster(Store(lambda: 0.0, disk=disk), told.append)
        pod = await there.create(POD, {"metadata": {"name": "p"}})
        assert pod["metadata"]["resourceVersion"] == "1"
        assert len(told) == 1
        disk.times = 1
        await there.patch(POD, "default", "p", {"status": {"a": "b"}}, subresource="status")
        disk.times = 1
        await there.delete(POD, "default", "p")
        assert not (await there.list(POD)).items
        assert len(told) == 3

    asyncio.run(story())


def test_other_refusals_are_passed_on() -> None:
    async def story() -> None:
        there = PatientCluster(Store(lambda: 0.0), lambda text: None)
        await there.create(POD, {"metadata": {"name": "p"}})
        with pytest.raises(AlreadyExists):
            await there.create(POD, {"metadata": {"name": "p"}})

    asyncio.run(story())
