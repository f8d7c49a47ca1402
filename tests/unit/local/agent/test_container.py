"""Containers of pods through their life: restarts and their back-off, reasons, last words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_node import Scene, container, play, statuses_at_starts

from vcjob.api.kinds import CONFIG_MAP, POD
from vcjob.api.types import Object
from vcjob.local.agent.podphase import has_begun


def status_of(status: Object) -> dict[str, Any]:
    """The status of the first container, {} while there is none."""
    found: list[dict[str, Any]] = status.get("containerStatuses") or [{}]
    return found[0]


def waits_for(reason: str) -> Callable[[Object], bool]:
    def holds(status: Object) -> bool:
        waiting = status_of(status).get("state", {}).get("waiting", {})
        return bool(waiting.get("reason") == reason)

    return holds


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 7, "Failed"), ("OnFailure", 0, "Succeeded")],
)
def test_a_container_that_is_not_to_restart_ends_the_pod(
    tmp_path: Path, policy: str, code: int, phase: str
) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy=policy)
        await stage.node.started("main")
        stage.node.exit("main", code)
        await stage.phase(phase)
        assert len(stage.node.starts) == 1

    play(tmp_path, story)


@pytest.mark.parametrize(("policy", "code"), [("Always", 0), ("Always", 1), ("OnFailure", 1)])
def test_a_container_that_ends_again_and_again_is_held_back(
    tmp_path: Path, policy: str, code: int
) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy=policy)
        await stage.node.started("main")
        stage.node.exit("main", code)
        await stage.node.started("main", times=2)
        await stage.until(lambda status: status_of(status)["restartCount"] == 1)
        stage.node.exit("main", code)
        waits = await stage.until(waits_for("CrashLoopBackOff"))
        assert waits["status"]["phase"] == "Running"
        assert status_of(waits["status"])["lastState"]["terminated"]["exitCode"] == code
        await stage.node.started("main", times=3)

    play(tmp_path, story, back_off_seconds=0.05)


def test_a_pod_deleted_while_a_container_is_held_back_is_gone_at_once(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Always")
        for times in (1, 2):
            await stage.node.started("main", times=times)
            await stage.until(lambda status: status_of(status).get("started"))
            stage.node.exit("main", 1)
            await stage.until(lambda status: not status_of(status)["started"])
        await stage.until(waits_for("CrashLoopBackOff"))
        await stage.cluster.delete(POD, "default", "p")
        await stage.gone()
        assert stage.node.signals == []

    play(tmp_path, story)


def test_a_pod_that_starts_at_once_is_written_few_times(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        before = stage.cluster.version
        await stage.create(restartPolicy="Never")
        await stage.phase("Running")
        stage.node.exit("main", 0)
        await stage.phase("Succeeded")
        await stage.agent.drain()
        # creation, address, about to start, running, container ended, pod over
        assert stage.cluster.version - before <= 6

    play(tmp_path, story)


def test_a_container_without_a_command_cannot_run(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Never", containers=[{"name": "main", "image": "nginx"}])
        failed = await stage.phase("Failed")
        ended = status_of(failed["status"])["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (128, "ContainerCannotRun")
        assert "no command" in ended["message"]
        assert await stage.events() == [("Failed", ended["message"])]

    play(tmp_path, story)


def test_the_last_state_is_kept_when_a_container_starts_again(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="OnFailure")
        for times in range(1, 4):
            await stage.node.started("main", times=times)
            stage.node.exit("main", 1)
        await stage.node.started("main", times=4)
        stage.node.exit("main", 0)
        done = await stage.phase("Succeeded")
        assert status_of(done["status"])["restartCount"] == 3
        assert status_of(done["status"])["lastState"]["terminated"]["exitCode"] == 1
        assert any(reason == "BackOff" for reason, _ in await stage.events())

    play(tmp_path, story, back_off_seconds=0.01)


def test_a_container_waits_for_a_config_map_and_says_so(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        key = {"configMapKeyRef": {"name": "settings", "key": "answer"}}
        env = [{"name": "ANSWER", "valueFrom": key}]
        await stage.create(containers=[container("main", env=env)])
        await stage.until(waits_for("CreateContainerConfigError"))
        assert any("settings" in message for _, message in await stage.events())
        data = {"metadata": {"name": "settings"}, "data": {"answer": "42"}}
        await stage.cluster.create(CONFIG_MAP, data)
        await stage.node.started("main")
        options = stage.node.starts[0].options
        assert options[options.index("ANSWER") + 1] == "42"

    play(tmp_path, story)


def test_that_a_container_lacks_nothing_any_more_is_written_before_it_starts(
    tmp_path: Path,
) -> None:
    async def story(stage: Scene) -> None:
        source = [{"configMapRef": {"name": "settings"}}]
        await stage.create(containers=[container("main", envFrom=source)])
        waits = await stage.until(waits_for("CreateContainerConfigError"))
        assert not has_begun(waits["status"])
        written = statuses_at_starts(stage)
        await stage.cluster.create(CONFIG_MAP, {"metadata": {"name": "settings"}})
        await stage.node.started("main")
        assert [has_begun(status) for status in written] == [True]

    play(tmp_path, story)


def test_a_container_that_the_node_cannot_start_has_ended_with_128(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        stage.node.refuse = "no room"
        await stage.create(restartPolicy="Never")
        failed = await stage.phase("Failed")
        ended = status_of(failed["status"])["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"]) == (
            128, "StartError", "no room",
        )  # fmt: skip

    play(tmp_path, story)
