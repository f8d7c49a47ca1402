"""Volumes of a pod: waited for, kept like what they show, refused."""

import shutil
from pathlib import Path

from fake_node import Scene, container, play

from vcjob.api.kinds import CONFIG_MAP, EVENT


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


def test_a_volume_that_cannot_be_fails_the_pod_with_the_reason(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        mounts = [{"name": "data", "mountPath": "/data"}]
        volumes = [{"name": "data", "hostPath": {"path": "/somewhere"}}]
        main = container("main", volumeMounts=mounts)
        await stage.create(restartPolicy="Never", containers=[main], volumes=volumes)
        failed = await stage.phase("Failed")
        assert "--allow-host-path" in str(failed["status"])

    play(tmp_path, story)
