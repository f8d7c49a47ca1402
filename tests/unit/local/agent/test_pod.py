"""A pod from its binding to its end, on a node that only writes down what it is asked."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from fake_node import Scene, container, play, statuses_at_starts

from vcjob.api.kinds import CONFIG_MAP, POD
from vcjob.local.agent import full_disk
from vcjob.local.agent.pod_files import PodFiles
from vcjob.local.agent.podphase import has_begun


def waiting_of(status: Any) -> Any:
    """Why the pod's first container waits."""
    return (status.get("containerStatuses") or [{}])[0].get("state", {}).get("waiting")


def test_a_pod_runs_and_succeeds_and_everything_is_given_back(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        created = await stage.create(restartPolicy="Never")
        await stage.node.started("main")
        running = await stage.phase("Running")
        assert running["status"]["podIP"] == "10.128.0.2"
        assert running["status"]["containerStatuses"][0]["ready"]
        stage.node.exit("main", 0, "hello\n")
        done = await stage.phase("Succeeded")
        state = done["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["reason"]) == (0, "Completed")
        await stage.agent.drain()
        assert stage.node.removed == [created["metadata"]["uid"]]
        assert stage.network.left == ["p"]
        assert stage.lines == [("main", b"hello")]

    play(tmp_path, story)


def test_init_containers_run_one_after_another_before_the_others(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(
            restartPolicy="Never",
            initContainers=[container("a"), container("b")],
            containers=[container("c"), container("d")],
        )
        for name in ("a", "b"):
            await stage.node.started(name)
            assert stage.node.running.keys() == {name}
            stage.node.exit(name, 0)
        await stage.node.started("c", "d")
        for name in ("c", "d"):
            stage.node.exit(name, 0)
        await stage.phase("Succeeded")

    play(tmp_path, story)


def test_a_failed_init_container_fails_a_pod_that_never_restarts(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Never", initContainers=[container("a")])
        await stage.node.started("a")
        stage.node.exit("a", 3)
        await stage.phase("Failed")
        assert len(stage.node.starts) == 1

    play(tmp_path, story)


def test_a_sidecar_starts_before_and_is_ended_after_the_main_containers(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        sidecar = container("side", restartPolicy="Always")
        await stage.create(restartPolicy="Never", initContainers=[sidecar])
        await stage.node.started("main")
        assert "side" in stage.node.running
        stage.node.exit("main", 0)
        await stage.phase("Succeeded")
        assert stage.node.signals == [("side", signal.SIGTERM)]

    play(tmp_path, story)


def test_a_pod_that_ended_is_deleted_without_waiting(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Never")
        await stage.node.started("main")
        stage.node.exit("main", 0)
        await stage.agent.drain()
        await stage.cluster.delete(POD, "default", "p")
        await stage.gone()
        assert stage.node.signals == []

    play(tmp_path, story)


def test_a_deadline_fails_the_pod(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Never", activeDeadlineSeconds=1)
        failed = await stage.phase("Failed")
        assert failed["status"]["reason"] == "DeadlineExceeded"
        assert stage.node.signals == [("main", signal.SIGTERM)]

    play(tmp_path, story)


def test_a_pod_says_what_volume_it_lacks_until_it_has_it(tmp_path: Path) -> None:
    late = {"name": "v", "configMap": {"name": "late"}}
    lacks = {
        "reason": "ContainerCreating",
        "message": 'volume "v": ConfigMap "late" does not exist',
    }

    async def story(stage: Scene) -> None:
        await stage.create(
            volumes=[late], restartPolicy="Never", initContainers=[container("first")]
        )

        def first(status: Any) -> Any:
            return waiting_of({"containerStatuses": status.get("initContainerStatuses")})

        await stage.until(lambda status: first(status) == lacks)
        metadata = {"name": "late", "namespace": "default"}
        await stage.cluster.create(CONFIG_MAP, {"metadata": metadata, "data": {"a": "b"}})
        await stage.node.started("first")
        started = await stage.until(lambda status: first(status) is None)
        assert waiting_of(started["status"]) == {"reason": "PodInitializing"}

    play(tmp_path, story)


def test_that_a_pod_lacks_no_volume_any_more_is_written_before_it_starts(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(volumes=[{"name": "v", "configMap": {"name": "late"}}])
        waits = await stage.until(lambda status: (waiting_of(status) or {}).get("message"))
        assert not has_begun(waits["status"])
        written = statuses_at_starts(stage)
        await stage.cluster.create(CONFIG_MAP, {"metadata": {"name": "late"}})
        await stage.node.started("main")
        assert [has_begun(status) for status in written] == [True]

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("step", "reason", "state"),
    [
        ("make", "FailedMount", "ContainerCreating"),
        ("message_mounts", "Failed", "CreateContainerError"),
    ],
)
def test_a_full_disk_is_told_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, reason: str, state: str
) -> None:
    works = getattr(PodFiles, step)
    full = True

    def make(*arguments: Any) -> Any:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return works(*arguments)

    async def story(stage: Scene) -> None:
        nonlocal full
        monkeypatch.setattr(full_disk, "_AGAIN_SECONDS", 0.001)
        monkeypatch.setattr(PodFiles, step, make)
        await stage.create()
        assert os.strerror(errno.ENOSPC) in await stage.told(reason)
        told = {"reason": state, "message": f"[Errno 28] {os.strerror(errno.ENOSPC)}"}
        await stage.until(lambda status: waiting_of(status) == told)
        full = False
        await stage.phase("Running")
        assert [of for of, _ in await stage.events()].count(reason) == 1

    play(tmp_path, story)
