"""Policies of whole Jobs whose pods are real: what makes them act, and what they do to whom."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import job, task

from vcjob.api.kinds import COMMAND, CONFIG_MAP, JOB, POD
from vcjob.api.names import MINIMUM_FIRST, SUSPEND, UNCOUNTED_EVENTS
from vcjob.api.types import Object
from vcjob.controller.cluster import EventType
from vcjob.local.engine import LocalEngine
from vcjob.local.options import EngineOptions

pytestmark = pytest.mark.local

# Each start of a pod is a line in a file of its name. A shell that is a container's first process
# hears SIGTERM only if it handles it.
START = "trap 'exit 0' TERM; echo >> /starts/$HOSTNAME; echo started; "
WAIT_FOR_ALL = "until [ $(ls /starts | wc -l) -ge 5 ]; do sleep 0.02; done; "
SECOND_OF_WORKER_0 = "[ $(wc -l < /starts/demo-worker-0) -gt 1 ]"
UNTIL_THEN = f"until {SECOND_OF_WORKER_0}; do sleep 0.02; done"
FOREVER = "while :; do sleep 0.02; done"


class Jobs:
    """One Job called demo on an engine of its own, and every phase that it is in."""

    def __init__(self, engine: LocalEngine, starts: Path) -> None:
        self.engine = engine
        self.directory = starts
        self.phases: list[str] = []
        self.uid = ""
        self._version = "0"
        self._started = 0
        self._more = asyncio.Event()
        engine.on_line = self._on_line

    async def create(
        self, *tasks: Object, annotations: dict[str, str] | None = None, **spec: Any
    ) -> None:
        made = job("demo", *tasks, **spec)
        made["metadata"]["annotations"] = annotations or {}
        [created] = await self.engine.submit([made])
        self.uid = created["metadata"]["uid"]

    async def until(self, holds: Callable[[EventType, Object], object]) -> Object:
        """The Job at its first change from now on for which this holds."""
        async for event in self.engine.cluster.watch(JOB, self._version):
            self._version = event.object["metadata"]["resourceVersion"]
            phase = str(((event.object.get("status") or {}).get("state") or {}).get("phase", ""))
            if phase and self.phases[-1:] != [phase]:
                self.phases.append(phase)
            if holds(event.type, event.object):
                return event.object
        raise AssertionError("the watch ended")

    async def reach(self, phase: str) -> Object:
        """The Job's status at its next change in which it is in this phase."""

        def there(_: EventType, obj: Object) -> bool:
            return bool((obj.get("status") or {}).get("state", {}).get("phase") == phase)

        return dict((await self.until(there))["status"])

    async def started(self, count: int) -> None:
        """Wait until pods have been started so many times."""
        while self._started < count:
            self._more.clear()
            await self._more.wait()

    def _on_line(self, namespace: str, pod: str, container: str, line: bytes) -> None:
        self._started += line == b"started"
        self._more.set()

    async def command(self, action: str) -> None:
        target = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": "demo", "uid": self.uid}
        metadata = {"generateName": "demo-", "namespace": "default"}
        await self.engine.cluster.create(
            COMMAND, {"metadata": metadata, "action": action, "target": target}
        )

    def starts(self) -> dict[str, int]:
        """How often each pod has been started."""
        return {
            path.name.removeprefix("demo-"): len(path.read_text().splitlines())
            for path in self.directory.iterdir()
        }


Play = Callable[[Callable[[Jobs], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Run a story on an engine whose state stays below the test's directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    starts = tmp_path / "starts"
    starts.mkdir()

    def run(story: Callable[[Jobs], Awaitable[None]]) -> None:
        engine = LocalEngine(EngineOptions(binds=((starts, "/starts", False),)))
        engine.prepare()

        async def tell() -> None:
            jobs = Jobs(engine, starts)
            async with engine, asyncio.timeout(40):
                await story(jobs)

        asyncio.run(tell())

    return run


def sh(script: str) -> tuple[str, ...]:
    return ("sh", "-c", START + script)


@pytest.mark.parametrize(
    ("action", "started_twice"),
    [
        ("RestartPod", {"worker-0"}),
        ("RestartPartition", {"worker-0", "worker-1"}),
        ("RestartTask", {"worker-0", "worker-1", "worker-2", "worker-3"}),
        ("RestartJob", {"worker-0", "worker-1", "worker-2", "worker-3", "ps-0"}),
    ],
)
def test_an_exit_code_restarts_whom_the_action_means(
    play: Play, action: str, started_twice: set[str]
) -> None:
    fails_once = f"[ $VC_TASK_INDEX != 0 ] || {SECOND_OF_WORKER_0} || exit 3; "
    worker = task(
        "worker",
        sh(WAIT_FOR_ALL + fails_once + UNTIL_THEN),
        replicas=4,
        policies=[{"exitCode": 3, "action": action}],
        partitionPolicy={"totalPartitions": 2, "partitionSize": 2},
    )

    async def story(jobs: Jobs) -> None:
        await jobs.create(worker, task("ps", sh(WAIT_FOR_ALL + UNTIL_THEN)))
        status = await jobs.reach("Completed")
        assert {name for name, count in jobs.starts().items() if count == 2} == started_twice
        assert status["retryCount"] == 1
        assert "Restarting" in jobs.phases

    play(story)


def test_a_program_that_is_killed_ends_its_job_as_its_exit_code_says(play: Play) -> None:
    async def story(jobs: Jobs) -> None:
        killed = {"exitCode": 128 + signal.SIGKILL, "action": "TerminateJob"}
        await jobs.create(task("worker", sh(f": {jobs.directory}; {FOREVER}")), policies=[killed])
        await jobs.started(1)
        # Its children look the same until they have become another program.
        os.kill(min(_programs_saying(f": {jobs.directory}")), signal.SIGKILL)
        status = await jobs.reach("Terminated")
        assert "exit code 137" in status["state"]["message"]
        assert status["failed"] == 1

    play(story)


def _programs_saying(words: str) -> list[int]:
    """Shells of this machine that run a script with these words."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            line = (directory / "cmdline").read_bytes()
        except OSError:
            continue  # it ended while we looked
        if line.startswith(b"sh\0-c\0") and words.encode() in line:
            found.append(int(directory.name))
    return found


@pytest.mark.parametrize(
    ("noticed_by", "event", "said"),
    [
        ({"activeDeadlineSeconds": 1}, "PodFailed", "(DeadlineExceeded)"),
        (
            {"restartPolicy": "Always", "livenessProbe": {"exec": {"command": ["false"]},
                                                          "periodSeconds": 1}},
            "TaskFailed",
            "containers of pod demo-worker-0 restarted once",
        ),
    ],
    ids=["deadline", "liveness probe"],
)  # fmt: skip
def test_a_program_that_hangs_and_is_noticed_ends_its_job_as_the_policy_says(
    play: Play, noticed_by: Object, event: str, said: str
) -> None:
    hangs = task("worker", sh(FOREVER), maxRetry=1)
    pod = hangs["template"]["spec"]
    for key, value in noticed_by.items():
        (pod["containers"][0] if key == "livenessProbe" else pod)[key] = value

    async def story(jobs: Jobs) -> None:
        await jobs.create(hangs, policies=[{"event": event, "action": "TerminateJob"}])
        status = await jobs.reach("Terminated")
        assert said in status["state"]["message"]

    play(story)


def test_a_pod_that_is_pending_for_too_long_suspends_its_job_until_it_is_resumed(
    play: Play,
) -> None:
    hangs = task("worker", sh("cat /given/word"))
    pod = hangs["template"]["spec"]
    pod["volumes"] = [{"name": "given", "configMap": {"name": "late"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "given", "mountPath": "/given"}]
    pending = {"event": "PodPending", "action": "AbortJob", "timeout": "1s"}

    async def story(jobs: Jobs) -> None:
        await jobs.create(hangs, policies=[pending])
        status = await jobs.reach("Aborted")
        assert "demo-worker-0 has been Pending for too long" in status["state"]["message"]
        metadata = {"name": "late", "namespace": "default"}
        late = {"metadata": metadata, "data": {"word": "here it is"}}
        await jobs.engine.cluster.create(CONFIG_MAP, late)
        await jobs.command("ResumeJob")
        status = await jobs.reach("Completed")
        assert status.get("retryCount", 0) == 0
        assert jobs.starts() == {"worker-0": 1}

    play(story)


def test_a_pod_that_somebody_deletes_is_replaced(play: Play) -> None:
    evicted = {"event": "PodEvicted", "action": "RestartPod"}

    async def story(jobs: Jobs) -> None:
        await jobs.create(task("worker", sh(UNTIL_THEN), replicas=2), policies=[evicted])
        await jobs.started(2)
        await jobs.engine.cluster.delete(POD, "default", "demo-worker-0")
        status = await jobs.reach("Completed")
        assert jobs.starts() == {"worker-0": 2, "worker-1": 1}
        assert status["retryCount"] == 1

    play(story)


def test_the_annotation_suspends_a_job_that_runs_and_lets_it_go_on(play: Play) -> None:
    async def annotate(jobs: Jobs, value: str | None) -> None:
        patch = {"metadata": {"annotations": {SUSPEND: value}}}
        await jobs.engine.cluster.patch(JOB, "default", "demo", patch)

    async def story(jobs: Jobs) -> None:
        await jobs.create(task("worker", sh(UNTIL_THEN)))
        await jobs.started(1)
        await annotate(jobs, "true")
        await jobs.reach("Aborted")
        assert not (await jobs.engine.cluster.list(POD)).items
        await annotate(jobs, None)
        await jobs.reach("Completed")
        assert jobs.starts() == {"worker-0": 2}

    play(story)


def test_a_job_in_order_ends_with_enough_successes_and_is_cleaned_up_in_time(play: Play) -> None:
    ready = "[ -e /starts/demo-ps-0 ] || exit 9; [ $VC_TASK_INDEX = 1 ] || "
    worker = task("worker", sh(ready + FOREVER), replicas=2, dependsOn={"name": ["ps"]})

    async def story(jobs: Jobs) -> None:
        ps = task("ps", sh(FOREVER), minAvailable=1)
        await jobs.create(ps, worker, minSuccess=1, ttlSecondsAfterFinished=1)
        status = await jobs.reach("Completed")
        assert status["succeeded"] == 1
        await jobs.until(lambda event, _: event is EventType.DELETED)
        assert not (await jobs.engine.cluster.list(POD)).items

    play(story)


def test_evictions_that_are_not_counted_use_up_no_retry_and_failures_do(play: Play) -> None:
    policies = [{"event": event, "action": "RestartPod"} for event in ("PodEvicted", "PodFailed")]
    third_fails = "[ $(wc -l < /starts/demo-worker-0) -lt 3 ] || exit 3; "

    async def story(jobs: Jobs) -> None:
        await jobs.create(
            task("worker", sh(third_fails + FOREVER)),
            annotations={UNCOUNTED_EVENTS: "PodEvicted"},
            maxRetry=1,
            policies=policies,
        )
        for evictions in (1, 2):
            await jobs.started(evictions)
            await jobs.engine.cluster.delete(POD, "default", "demo-worker-0")
        status = await jobs.reach("Failed")
        assert jobs.starts() == {"worker-0": 3}
        assert status["retryCount"] == 3
        assert "exit code 3" in status["state"]["message"]

    play(story)


def test_with_the_minimum_first_others_are_made_once_it_runs(play: Play) -> None:
    lead = task("lead", sh("cat /given/word; " + WAIT_FOR_ALL.replace("5", "3")))
    pod = lead["template"]["spec"]
    pod["volumes"] = [{"name": "given", "configMap": {"name": "late"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "given", "mountPath": "/given"}]
    others = task("other", sh(""), replicas=2, minAvailable=0)

    async def story(jobs: Jobs) -> None:
        await jobs.create(lead, others, annotations={MINIMUM_FIRST: "true"}, minAvailable=1)

        def two_wait_for_one(_: EventType, obj: Object) -> bool:
            status = obj.get("status") or {}
            told = status.get("state", {}).get("message", "")
            return status.get("pending") == 1 and f"({MINIMUM_FIRST}): 2 of task other" in told

        await jobs.until(two_wait_for_one)
        pods = (await jobs.engine.cluster.list(POD)).items
        assert [pod["metadata"]["name"] for pod in pods] == ["demo-lead-0"]
        metadata = {"name": "late", "namespace": "default"}
        late = {"metadata": metadata, "data": {"word": "here it is"}}
        await jobs.engine.cluster.create(CONFIG_MAP, late)
        await jobs.reach("Completed")
        assert jobs.starts() == {"lead-0": 1, "other-0": 1, "other-1": 1}

    play(story)
