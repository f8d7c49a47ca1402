"""What becomes of Jobs, as recorded from genuine Volcano: states, phases and Events.

All recordings are played beside each other, as Jobs of many users are.
"""

import asyncio
import traceback
from typing import Any

import pytest
from end_to_end.replaying import BY_A_PLAYED_SCHEDULER, expected, play
from end_to_end.target import Target
from recordings import RECORDINGS

_AT_THE_SAME_TIME = 8
NAMES = sorted(RECORDINGS)
WITH_QUOTAS = {name for name in NAMES if "ResourceQuota" in str(RECORDINGS[name]["steps"])}


def obstacle(name: str, target: Target) -> str:
    """Why a recording cannot be played on a cluster, empty if it can."""
    if name in WITH_QUOTAS and not target.has_quotas:
        return "the server enforces no quotas"
    if name in BY_A_PLAYED_SCHEDULER and target.has_scheduler:
        return "the cluster's scheduler admits every gang at once"
    return ""


@pytest.fixture(scope="module")
def played(target: Target, operator: Any, request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """What was not as expected, by the names of the recordings that were asked for."""
    here = [item for item in request.session.items if item.path == request.path]
    names = [item.callspec.params["name"] for item in here if hasattr(item, "callspec")]
    turns = asyncio.Semaphore(_AT_THE_SAME_TIME)

    async def play_one(name: str) -> list[str]:
        course = await expected(name, target.controller)
        async with turns:
            try:
                problems, seen = await target.tell(lambda world: play(world, name, course))
            except Exception:
                return [traceback.format_exc()]
        target.save(f"lifecycle-{name}", seen)
        return problems

    async def play_all() -> dict[str, list[str]]:
        playable = [name for name in names if not obstacle(name, target)]
        found = await asyncio.gather(*map(play_one, playable))
        return dict(zip(playable, found, strict=True))

    return asyncio.run(play_all())


@pytest.mark.timeout(300)  # the first test has the others played too
@pytest.mark.parametrize("name", NAMES)
def test_what_happens_is_as_expected(
    name: str, target: Target, played: dict[str, list[str]]
) -> None:
    if reason := obstacle(name, target):
        pytest.skip(reason)
    assert not played[name], "\n".join(played[name])
