"""The end of a pod that runs: which signals, in which order, how soon."""

import re
import signal
from pathlib import Path

import pytest
from fake_node import Scene, container, play

from vcjob.api.kinds import POD

TERM, KILL = signal.SIGTERM, signal.SIGKILL


@pytest.mark.parametrize("ignores", [False, True])
def test_deletion_sends_sigterm_and_sigkill_only_to_who_does_not_listen(
    tmp_path: Path, ignores: bool
) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(terminationGracePeriodSeconds=1 if ignores else 600)
        await stage.node.started("main")
        if ignores:
            stage.node.heeds.discard(TERM)
        await stage.cluster.delete(POD, "default", "p")
        await stage.gone()
        assert stage.node.signals == [("main", TERM), *([("main", KILL)] if ignores else [])]

    play(tmp_path, story)


def test_main_containers_end_before_those_that_started_before_them(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        sidecars = [container(name, restartPolicy="Always") for name in ("first", "second")]
        await stage.create(initContainers=sidecars)
        await stage.phase("Running")
        await stage.node.started("main")
        await stage.cluster.delete(POD, "default", "p")
        await stage.gone()
        assert [name for name, _ in stage.node.signals] == ["main", "second", "first"]

    play(tmp_path, story)


def test_a_pod_whose_object_vanishes_is_killed_at_once(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create()
        await stage.node.started("main")
        await stage.cluster.delete(POD, "default", "p", grace_period_seconds=0)
        await stage.agent.drain()
        assert stage.node.signals == [("main", KILL)]

    play(tmp_path, story)


@pytest.mark.parametrize("shorter", [0, 1])
def test_a_second_deletion_shortens_the_grace_of_a_pod_that_is_ending(
    tmp_path: Path, shorter: int
) -> None:
    async def story(stage: Scene) -> None:
        stage.node.heeds.discard(TERM)
        await stage.create(terminationGracePeriodSeconds=600)
        await stage.node.started("main")
        await stage.cluster.delete(POD, "default", "p")
        await stage.node.signalled("main", TERM)
        await stage.cluster.delete(POD, "default", "p", grace_period_seconds=shorter)
        await stage.agent.drain()
        assert stage.node.signals == [("main", TERM), ("main", KILL)]

    play(tmp_path, story)


def test_a_pod_that_takes_its_time_to_end_says_when_it_is_killed(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        stage.node.heeds.discard(TERM)
        await stage.create(terminationGracePeriodSeconds=600)
        await stage.node.started("main")
        await stage.cluster.delete(POD, "default", "p")
        assert re.search(r"killed in 5\d\d s unless", await stage.told("Killing"))
        await stage.cluster.delete(POD, "default", "p", grace_period_seconds=0)
        await stage.agent.drain()

    play(tmp_path, story)
