"""What becomes of Jobs, as recorded from genuine Volcano: states, phases and Events."""

import asyncio

import pytest
from end_to_end.operating import Operating
from end_to_end.replaying import (
    BY_A_PLAYED_SCHEDULER,
    WITH_DELETED_JOBS,
    WITH_QUOTAS,
    expected,
    play,
)
from end_to_end.target import Target
from end_to_end.together import Told, tell_together
from end_to_end.world import World
from recordings import RECORDINGS

NAMES = sorted(RECORDINGS)
Problems = list[str]


def obstacle(name: str, target: Target) -> str:
    """Why a recording cannot be played on a cluster, empty if it can."""
    if name in WITH_QUOTAS and not target.facts.quotas:
        return "nobody fills in quotas"
    if name in WITH_DELETED_JOBS and not target.facts.collector:
        return "nobody collects garbage"
    if name in BY_A_PLAYED_SCHEDULER and target.facts.scheduler:
        return "the cluster's scheduler admits every gang at once"
    return ""


@pytest.fixture(scope="module")
def played(
    target: Target, operator: Operating | None, request: pytest.FixtureRequest
) -> Told[Problems]:
    """What was not as expected."""

    async def story(world: World, name: str) -> Problems:
        problems, seen = await play(world, name, await expected(name, target.controller))
        target.save(f"lifecycle-{name}", seen)
        return problems

    return tell_together(request, target, story, obstacle)


def test_what_volcano_did_is_known_of_every_step() -> None:
    for name in NAMES:
        course = asyncio.run(expected(name, "volcano"))
        steps = len(RECORDINGS[name]["steps"])
        assert (len(course.after), len(course.said)) == (steps, steps)
        assert course.phases[0] in ("Pending", "Restarting")


@pytest.mark.timeout(300)  # the first test has the others played too
@pytest.mark.parametrize("name", NAMES)
def test_what_happens_is_as_expected(name: str, target: Target, played: Told[Problems]) -> None:
    if reason := obstacle(name, target):
        pytest.skip(reason)
    assert not played.of(name)
