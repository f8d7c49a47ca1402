"""The recordings of genuine Volcano, played once more on a cluster.

What is expected of vcjob's operator is what its controller does under a clock of the tests' own,
which tests/reference/test_lifecycle.py compares with the recordings; of Volcano's controller it is
what was recorded.
"""

import contextlib
import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from recordings import RECORDINGS, REFERENCE
from replay import Replay, after_step, as_ours, is_status
from simulation import Simulation

from end_to_end.facts import RESOURCE_QUOTA, wait_for_quota
from end_to_end.recording import phase_of, said, seen
from end_to_end.world import World
from vcjob.api.types import Object

EVENTS_OF_VOLCANO = json.loads((REFERENCE / "lifecycle-events-of-volcano.json").read_text())
WITH_QUOTAS = frozenset(
    name for name, one in RECORDINGS.items() if "ResourceQuota" in json.dumps(one["steps"])
)
WITH_DELETED_JOBS = frozenset(
    name for name, one in RECORDINGS.items() if '"deleteJob"' in json.dumps(one["steps"])
)
BY_A_PLAYED_SCHEDULER = frozenset({
    "28-unschedulable-condition", "35-min-available-not-reached", "37-abort-before-inqueue",
    "45-restartjob-while-pending", "48-scale-up-before-inqueue",
})  # fmt: skip
"""Recordings in which PodGroups are not admitted at once, which a real scheduler would."""

_LEFT_OVER = "WaitingForLeftovers"
_QUIET_SECONDS = 0.5
"""How long to look on where a step should change nothing: only time can show that."""


@dataclass
class Course:
    """What happens: state and all that Events have said after each step, and the Job's phases."""

    after: list[Object] = field(default_factory=list)
    said: list[set[str]] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)


async def expected(name: str, controller: str) -> Course:
    """What a controller (``vcjob`` or ``volcano``) is expected to do in a recording."""
    recording = RECORDINGS[name]
    course = Course()
    if controller == "volcano":
        for step, told in zip(recording["steps"], EVENTS_OF_VOLCANO[name], strict=True):
            statuses = filter(is_status, step["statuses"])
            _add_phases(course, [status["phase"] for status in statuses])
            after = dict(step["after"])
            if isinstance(after["job"], dict):
                after["job"] = as_ours(after["job"])
            course.after.append(after)
            course.said.append({*(course.said[-1] if course.said else ()), *told})
        return course

    async def note(simulation: Simulation, number: int, theirs: Object, ours: Object) -> None:
        course.after.append(copy.deepcopy(ours))
        _add_phases(course, map(phase_of, replay.statuses))
        course.said.append({said(event) for event in await simulation.events()})

    replay = Replay(recording, between=note)
    await replay.differences()
    return course


def _add_phases(course: Course, found: Any) -> None:
    for phase in found:
        if phase and course.phases[-1:] != [phase]:
            course.phases.append(phase)


async def play(world: World, name: str, course: Course) -> tuple[list[str], Object]:
    """Play a recording; returns what is not as expected, and what was seen."""
    recording = RECORDINGS[name]
    replay = ReplayOnCluster(recording)
    job = {"metadata": {"name": "lc"}, "spec": recording["spec"]}
    needs_time = '"timeout"' in json.dumps(recording["spec"]) or name in WITH_QUOTAS
    for number, step in enumerate(recording["steps"]):
        await world.hold_pods(True)
        wanted = course.after[number]
        for op in step["ops"]:
            if op["op"] == "wait" and not needs_time:
                if world.leaving():  # which takes a while on any node
                    await world.advance(_QUIET_SECONDS)
            elif op["op"] != "podGroupPhase" or wanted["podGroups"]:
                await replay.do(world, op, job)
        await _until_noticed(world, course.said[number])
        await world.hold_pods(False)
        if world.facts.scheduler and not _is_stable(wanted):
            continue  # it admits the gang faster than we can look
        if number and wanted == course.after[number - 1]:
            await world.advance(_QUIET_SECONDS)
        told = course.said[number]
        if wrong := await _not_reached(world, wanted, told, of_chance=name in WITH_QUOTAS):
            return [f"step {number}: {one}" for one in wrong], seen(world)

    observed = seen(world)
    # What is left over of a Job besides its pods is a matter of the garbage collector's pace.
    besides = {one for one in observed["events"] if _LEFT_OVER in one}
    events = [observed["events"], sorted(course.said[-1] | besides)]
    if name in WITH_QUOTAS:
        events = [sorted({*_nameless(told)}) for told in events]
    problems = [
        f"{what}: {found}, expected {wanted}"
        for what, found, wanted in (
            ("phases", observed["phases"], course.phases), ("events", *events),
        )
        if found != wanted
    ]  # fmt: skip
    return problems, observed


async def _until_noticed(world: World, told: set[str]) -> None:
    """Let nothing that is left over go before somebody was told that it is waited for."""
    waiting = {one for one in told if _LEFT_OVER in one}
    with contextlib.suppress(TimeoutError):  # what is missing is told later
        await world.until(lambda: waiting <= {said(event) for event in world.job_events()})


async def _not_reached(
    world: World, wanted: Object, told: set[str], *, of_chance: bool
) -> list[str]:
    """Wait for a state, and for what Events say; returns what is not as wanted in the end.

    ``of_chance``: which of the pods there are is the server's choice.
    """

    async def wrong() -> list[str]:
        heard = {said(event) for event in world.job_events()}
        found = await after_step(world)
        pair, missing = (wanted, found), told - heard
        if of_chance:
            pair = (_nameless(wanted), _nameless(found))
            missing = {*_nameless([*told])} - {*_nameless([*heard])}
        if world.facts.scheduler:  # which writes phases of its own
            pair = (_without_group_phases(wanted), _without_group_phases(found))
        return [*differences(*pair), *(f"no Event says {one}" for one in sorted(missing))]

    while found := await wrong():
        try:
            await world.change()
        except TimeoutError:
            break
    return found


def _nameless(value: Any) -> Any:
    """What is told of pods, without which ones: requests at the same moment have no order."""
    return json.loads(re.sub(r"\blc-(\w+)-\d+\b", r"lc-\1-<any>", json.dumps(value)))


def _is_stable(after: Object) -> bool:
    """Whether the Job is not one whose gang a scheduler admits next."""
    phase = after["job"]["phase"] if isinstance(after["job"], dict) else ""
    waits = any(group["phase"] not in ("Inqueue", "Running") for group in after["podGroups"])
    return phase != "Restarting" and not (phase == "Pending" and waits)


def _without_group_phases(after: Object) -> Object:
    return {**after, "podGroups": [{**group, "phase": ""} for group in after["podGroups"]]}


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where two values differ, in words."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            yield from differences(wanted.get(key), found.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif wanted != found:
        yield f"{path} is {found!r}, expected {wanted!r}"


class ReplayOnCluster(Replay):
    """Carries out the operations of a recording on a cluster."""

    async def _create(self, s: Any, obj: Object) -> None:
        if obj["kind"] == "ResourceQuota":
            made = await s.create(RESOURCE_QUOTA, obj)
            await wait_for_quota(s.cluster, s.namespace, made["metadata"]["name"])
        else:
            await super()._create(s, obj)

    async def _delete(self, s: Any, op: Object) -> None:
        if op["resource"] == "resourcequotas":
            await s.delete(RESOURCE_QUOTA, s.namespace, op["name"])
        else:
            await super()._delete(s, op)
