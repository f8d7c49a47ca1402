"""Containers of pods through their life: restarts and their back-off, reasons, last words."""

import asyncio
import gc
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_node import Scene, container, scene

from vcjob.api.kinds import CONFIG_MAP, EVENT, POD
from vcjob.api.types import Object
from vcjob.local.node.client import NodeGone

Story = Callable[[Scene], Awaitable[None]]


def play(directory: Path, story: Story, **settings: object) -> None:
    async def main() -> None:
        async with scene(directory, **settings) as stage:
            await asyncio.wait_for(story(stage), 20)

    asyncio.run(main())


def status_of(status: Object) -> dict[str, Any]:
    """The status of the first container, {} while there is none."""
    found: list[dict[str, Any]] = status.get("containerStatuses") or [{}]
    return found[0]


def waits_for(reason: str) -> Callable[[Object], bool]:
    def holds(status: Object) -> bool:
        waiting = status_of(status).get("state", {}).get("waiting", {})
        return bool(waiting.get("reason") == reason)

    return holds


async def messages(stage: Scene) -> list[str]:
    return [event["message"] for event in (await stage.cluster.list(EVENT)).items]


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


def test_a_variable_comes_from_a_config_map_that_is_made_later(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        source = {"configMapKeyRef": {"name": "settings", "key": "mode"}}
        await stage.create(containers=[container("main", env=[{"name": "M", "valueFrom": source}])])
        await stage.until(waits_for("CreateContainerConfigError"))
        await stage.cluster.create(
            CONFIG_MAP, {"metadata": {"name": "settings"}, "data": {"mode": "fast"}}
        )
        await stage.phase("Running")
        options = stage.node.starts[0].options
        assert options[options.index("M") + 1] == "fast"
        assert len(await messages(stage)) == 1

    play(tmp_path, story)


def test_a_pod_waits_for_what_its_volume_shows(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(volumes=[{"name": "v", "configMap": {"name": "files"}}])
        await stage.until(lambda status: status.get("podIP"))
        await stage.cluster.create(CONFIG_MAP, {"metadata": {"name": "files"}, "data": {"a": "b"}})
        await stage.phase("Running")

    play(tmp_path, story)


def test_files_that_cannot_be_written_any_more_end_nothing_and_are_told(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        files = {"metadata": {"name": "files"}, "data": {"a": "b"}}
        await stage.cluster.create(CONFIG_MAP, files)
        await stage.create(volumes=[{"name": "v", "configMap": {"name": "files"}}])
        await stage.phase("Running")
        shutil.rmtree(tmp_path / "pods")
        (tmp_path / "pods").touch()
        listed = await stage.cluster.list(EVENT)
        await stage.cluster.patch(CONFIG_MAP, "default", "files", {"data": {"a": "c"}})
        told = await anext(aiter(stage.cluster.watch(EVENT, listed.resource_version)))
        assert told.object["message"].startswith("files do not follow a change: ")

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("facts", "code", "reason", "message"),
    [
        ({"started": False}, 127, "StartError", "what it said"),
        ({"out_of_memory": True}, 137, "OOMKilled", ""),
        ({}, 3, "Error", ""),
    ],
)
def test_the_reason_of_an_end(
    tmp_path: Path, facts: dict[str, bool], code: int, reason: str, message: str
) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Never")
        await stage.node.started("main")
        stage.node.exit("main", code, "what it said\n", **facts)
        failed = await stage.phase("Failed")
        ended = status_of(failed["status"])["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (code, reason)
        assert ended.get("message", "") == message

    play(tmp_path, story)


def test_a_failed_container_can_show_the_end_of_its_log(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        main = container("main", terminationMessagePolicy="FallbackToLogsOnError")
        await stage.create(restartPolicy="Never", containers=[main])
        await stage.node.started("main")
        stage.node.exit("main", 1, "no such file\n")
        failed = await stage.phase("Failed")
        ended = status_of(failed["status"])["state"]["terminated"]
        assert ended["message"] == "no such file\n"

    play(tmp_path, story)


def test_an_agent_that_is_stopped_while_a_container_starts_leaves_no_complaint(
    tmp_path: Path,
) -> None:
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, complaint: complaints.append(complaint))
        async with scene(tmp_path) as stage:
            stage.node.hold = loop.create_future()
            await stage.create()
            await stage.node.asked.wait()
        stage.node.hold.set_exception(NodeGone("the node is gone"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # the start hears of it; what it says is dropped with its task

    asyncio.run(main())
    gc.collect()
    assert complaints == []


def test_the_last_line_of_output_is_known(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        created = await stage.create(restartPolicy="Never")
        await stage.node.started("main")
        stage.node.exit("main", 0, "a line\nthe last")
        await stage.agent.drain()
        assert stage.lines == [("main", b"a line"), ("main", b"the last")]
        assert stage.agent.last_line(created["metadata"]["uid"], "main") == b"the last"

    play(tmp_path, story)


def test_a_container_without_a_command_cannot_run(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Never", containers=[{"name": "main", "image": "nginx"}])
        failed = await stage.phase("Failed")
        ended = status_of(failed["status"])["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (128, "ContainerCannotRun")
        assert "no command" in ended["message"]
        assert await messages(stage) == [ended["message"]]

    play(tmp_path, story)
