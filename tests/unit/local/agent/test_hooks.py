"""Hooks of containers: what a failing one leads to."""

import signal
from pathlib import Path

from fake_node import Scene, container, play

from vcjob.api.kinds import POD


def test_a_failing_pre_stop_hook_is_told_and_the_container_ended_all_the_same(
    tmp_path: Path,
) -> None:
    async def story(stage: Scene) -> None:
        hook = {"preStop": {"httpGet": {"port": 80}}}
        await stage.create(containers=[container("main", lifecycle=hook)])
        await stage.phase("Running")
        await stage.cluster.delete(POD, "default", "p")
        await stage.gone()
        assert stage.node.signals == [("main", signal.SIGTERM)]
        assert ("FailedPreStopHook", "main: preStop hook: nothing can be reached") in (
            await stage.events()
        )

    play(tmp_path, story)


def test_a_container_whose_post_start_hook_fails_is_ended(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        stage.node.heeds = {signal.SIGINT}
        hook = {"postStart": {"tcpSocket": {"port": 80}}, "stopSignal": "SIGINT"}
        main = container("main", lifecycle=hook)
        await stage.create(restartPolicy="Never", containers=[main])
        failed = await stage.phase("Failed")
        assert stage.node.signals == [("main", signal.SIGINT)]
        assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 130

    play(tmp_path, story)


def test_a_hook_that_sleeps_ends_with_the_grace_period(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        hook = {"preStop": {"sleep": {"seconds": 3600}}}
        main = container("main", lifecycle=hook)
        await stage.create(terminationGracePeriodSeconds=1, containers=[main])
        await stage.phase("Running")
        await stage.cluster.delete(POD, "default", "p")
        await stage.gone()
        assert stage.node.signals == [("main", signal.SIGTERM)]

    play(tmp_path, story)
