"""Lives that Volcano's controller began and ours goes on with, at every step of every recording.

Up to the cut the world is as it was recorded: status without a note of ours, version and retries as
Volcano counted them, supporting objects without our label or gone as after its kills. From there on
each step has to end as recorded, but for what the same rows of docs/compatibility.md name.
"""

import asyncio
from typing import Any

import pytest
from pinned import pinned
from recordings import RECORDINGS
from replay import Replay
from simulation import Simulation
from volcanos_traces import leave_as_recorded, pods_of

from vcjob.api.kinds import SUPPORTING
from vcjob.api.names import MANAGED_BY
from vcjob.api.types import Object

PINNED = pinned()
CUTS = [
    (name, number)
    for name, recording in sorted(RECORDINGS.items())
    for number in range(len(recording["steps"]) - 1)
]


class TakenOver:
    """A replay in which ours takes over after one step; ``possible`` is whether it could."""

    def __init__(self, cut: int) -> None:
        self.cut = cut
        self.possible = False
        self.restarted: set[str] = set()
        self.phases = ("", "")
        self.unlabelled: list[str] = []

    async def between(self, s: Simulation, number: int, theirs: Object, ours: Object) -> None:
        if number != self.cut or not isinstance(ours["job"], dict):
            return
        same_pods = pods_of(theirs) == pods_of(ours)
        same_groups = len(theirs["podGroups"]) <= len(ours["podGroups"])
        self.possible = same_pods and same_groups and isinstance(theirs["job"], dict)
        if not self.possible:
            return
        uids = {pod["metadata"]["uid"] for pod in await s.pods()}
        await s.crash()
        await leave_as_recorded(s, theirs)
        await s.start()
        await s.settle()
        self.restarted = uids - {pod["metadata"]["uid"] for pod in await s.pods()}
        self.phases = (theirs["job"]["phase"], await s.phase("lc"))
        for kind in SUPPORTING:
            for obj in (await s.store.list(kind)).items:
                mine = obj["metadata"].get("ownerReferences")
                if mine and MANAGED_BY not in (obj["metadata"].get("labels") or {}):
                    self.unlabelled.append(f"{kind} {obj['metadata']['name']}")


def _taken_over(name: str, cut: int) -> tuple[TakenOver, list[tuple[int, str, Any, Any]]]:
    taking = TakenOver(cut)
    replay = Replay(RECORDINGS[name], between=taking.between)
    found = asyncio.run(asyncio.wait_for(replay.differences(), 30))
    return taking, found


@pytest.mark.parametrize(("name", "cut"), CUTS)
def test_a_life_goes_on_as_if_nobody_had_changed(name: str, cut: int) -> None:
    taking, found = _taken_over(name, cut)
    if not taking.possible:
        pytest.skip("the two differ in their pods by a row of docs/compatibility.md")
    assert not taking.restarted
    assert taking.phases[0] == taking.phases[1]
    if taking.phases[0] in ("Pending", "Running", "Restarting"):
        assert not taking.unlabelled
    pinned_here = PINNED.get(name, {})
    unexplained = [
        f"step {step}: {what} is {ours}, of Volcano {theirs}"
        for step, what, theirs, ours in found
        if step > cut and what not in pinned_here.get(str(step), {})
    ]
    assert not unexplained
