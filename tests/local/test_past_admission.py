"""Jobs written straight into the store: past all checks, scaled, deleted and created again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import job, task

from vcjob.api.kinds import CONFIG_MAP, JOB, POD, QUEUE
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster
from vcjob.local.engine import LocalEngine
from vcjob.local.options import EngineOptions

pytestmark = pytest.mark.local

Story = Callable[[Cluster, asyncio.Event], Awaitable[None]]
Play = Callable[[Story], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Run a story on an engine whose pods share the directory /shared.

    It is also given what is set when a pod prints something.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shared = tmp_path / "shared"
    shared.mkdir()

    def run(story: Story) -> None:
        engine = LocalEngine(EngineOptions(binds=((shared, "/shared", False),)))
        engine.prepare()

        async def tell() -> None:
            started = asyncio.Event()
            engine.on_line = lambda *_: started.set()
            async with engine, asyncio.timeout(40):
                await story(engine.cluster, started)

        asyncio.run(tell())

    return run


async def create(cluster: Cluster, manifest: Object) -> Object:
    metadata = {"namespace": "default", **manifest["metadata"]}
    return await cluster.create(JOB, {**manifest, "metadata": metadata})


async def reach(cluster: Cluster, name: str, *, uid: str = "", **state: str) -> Object:
    """The Job as soon as its state has these fields."""
    async for event in cluster.watch(JOB, "0"):
        obj = event.object
        there = ((obj.get("status") or {}).get("state") or {}).items()
        metadata = obj["metadata"]
        if metadata["name"] == name and uid in ("", metadata["uid"]) and there >= state.items():
            return obj
    raise AssertionError("the watch ended")


def ends(script: str = "exit 0", **more: Any) -> Object:
    return task("w", ("sh", "-c", script), **more)


def test_jobs_that_cannot_work_wait_and_stop_no_other_until_they_are_put_right(play: Play) -> None:
    nameless = ends()
    del nameless["template"]["spec"]["containers"][0]["name"]

    async def story(cluster: Cluster, _: asyncio.Event) -> None:
        theirs = {"metadata": {"name": "taken-svc", "namespace": "default"}}
        await cluster.create(CONFIG_MAP, theirs)
        await create(cluster, job("nameless", nameless))
        await create(cluster, job("unreadable", ends(), plugins={"svc": "yes"}))
        await create(cluster, job("argument", ends(), plugins={"svc": ["--no-such"]}))
        await create(cluster, job("plugin", ends(), plugins={"no-such": []}))
        await create(cluster, job("queue", ends(), queue="later"))
        await create(cluster, job("taken", ends(), plugins={"svc": []}))
        await create(cluster, job("other", ends(), plugins={"svc": []}))
        await reach(cluster, "other", phase="Completed")
        for name, reason in (
            ("nameless", "Malformed"), ("unreadable", "Malformed"), ("argument", "PluginError"),
            ("plugin", "PluginError"), ("queue", "QueueNotFound"), ("taken", "NameTaken"),
        ):  # fmt: skip
            await reach(cluster, name, phase="Pending", reason=reason)
        pods = (await cluster.list(POD)).items
        assert [pod["metadata"]["name"] for pod in pods] == ["other-w-0"]
        await cluster.patch(JOB, "default", "nameless", {"spec": {"tasks": [ends()]}})
        for name in ("unreadable", "argument"):
            await cluster.patch(JOB, "default", name, {"spec": {"plugins": {"svc": []}}})
        await cluster.patch(JOB, "default", "plugin", {"spec": {"plugins": {"no-such": None}}})
        await cluster.create(QUEUE, {"metadata": {"name": "later"}, "spec": {"weight": 1}})
        await cluster.delete(CONFIG_MAP, "default", "taken-svc")
        for name in ("nameless", "unreadable", "argument", "plugin", "queue", "taken"):
            await reach(cluster, name, phase="Completed")

    play(story)


def test_who_comes_by_scaling_finds_all_others_and_those_before_find_him(play: Play) -> None:
    host = "grow-w-2"
    everybody = (
        "until [ $(grep -c . /etc/volcano/w.host) = 3 ]; do"
        " [ $VC_W_NUM = 3 ] && exit 9; sleep 0.02; done; "
        f"grep -q '^Host {host}$' /root/.ssh/config || [ $VC_W_NUM = 1 ] || exit 8; "
        "grep -q '^Host grow-w-[*]' /root/.ssh/config || exit 7; "
        f"until getent hosts {host}.grow; do sleep 0.02; done; "
        "touch /shared/$HOSTNAME; until [ $(ls /shared | wc -l) = 3 ]; do sleep 0.02; done"
    )

    async def story(cluster: Cluster, _: asyncio.Event) -> None:
        plugins: Object = {"svc": [], "ssh": []}
        await create(cluster, job("grow", ends(everybody), plugins=plugins))
        await reach(cluster, "grow", phase="Running")
        spec = {"tasks": [ends(everybody, replicas=3)], "minAvailable": 3}
        await cluster.patch(JOB, "default", "grow", {"spec": spec})
        done = await reach(cluster, "grow", phase="Completed")
        assert done["status"]["succeeded"] == 3

    play(story)


def test_pods_of_a_job_run_only_when_those_of_its_deleted_namesake_have_ended(play: Play) -> None:
    alone = (
        "trap 'sleep 0.3; rmdir /shared/alone; exit 0' TERM; mkdir /shared/alone || exit 9; "
        "echo $ROLE; while [ $ROLE = first ]; do sleep 0.02; done"
    )
    evicted = [{"event": "PodEvicted", "action": "TerminateJob"}]

    def manifest(role: str) -> Object:
        return job("twice", ends(f"ROLE={role}; {alone}"), plugins={"svc": []}, policies=evicted)

    async def story(cluster: Cluster, started: asyncio.Event) -> None:
        await create(cluster, manifest("first"))
        await started.wait()
        await cluster.delete(JOB, "default", "twice")
        second = await create(cluster, manifest("second"))
        uid = second["metadata"]["uid"]
        await reach(cluster, "twice", uid=uid, reason="WaitingForLeftovers")
        await reach(cluster, "twice", uid=uid, phase="Completed")

    play(story)
