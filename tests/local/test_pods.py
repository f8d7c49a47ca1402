"""Real pods, from their objects: each test holds for root and for an ordinary user alike."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, POD, SERVICE
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, NotFound
from vcjob.local.engine import NODE_NAME, LocalEngine
from vcjob.local.options import EngineOptions

pytestmark = pytest.mark.local


class Pods:
    """Pods on an engine of their own, bound at once; ``lines`` are what each container printed."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine
        self.lines: dict[tuple[str, str], list[str]] = {}
        self._printed = asyncio.Event()
        engine.on_line = self._on_line

    @property
    def cluster(self) -> Cluster:
        return self.engine.cluster

    def _on_line(self, namespace: str, pod: str, container: str, line: bytes) -> None:
        self.lines.setdefault((pod, container), []).append(line.decode())
        self._printed.set()

    def said(self, pod: str = "p", container: str = "main") -> list[str]:
        return self.lines.get((pod, container), [])

    async def create(
        self,
        *containers: Object,
        name: str = "p",
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> Object:
        body = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "nodeName": NODE_NAME,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 30,
                "containers": list(containers),
                **spec,
            },
        }
        return await self.cluster.create(POD, body)

    async def until(self, holds: Callable[[Object], object], name: str = "p") -> Object:
        """The pod's status once it is as asked."""
        while True:
            pod = await self.cluster.get(POD, "default", name)
            if holds(pod["status"]):
                return dict(pod["status"])
            await anext(aiter(self.cluster.watch(POD, pod["metadata"]["resourceVersion"])))

    async def ended(self, name: str = "p") -> Object:
        return await self.until(lambda status: status["phase"] in ("Succeeded", "Failed"), name)

    async def line(self, text: str, pod: str = "p", container: str = "main") -> None:
        """Wait until the container has printed a line."""
        while text not in self.said(pod, container):
            self._printed.clear()
            await self._printed.wait()

    async def delete(self, name: str = "p", grace: int | None = None) -> None:
        """Ask for deletion, and wait until the object is gone."""
        await self.cluster.delete(POD, "default", name, grace_period_seconds=grace)
        with contextlib.suppress(NotFound):
            while True:
                pod = await self.cluster.get(POD, "default", name)
                version = pod["metadata"]["resourceVersion"]
                await anext(aiter(self.cluster.watch(POD, version)))


def shell(script: str, name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "none", "command": ["sh", "-c", script], **more}


def exit_codes(status: Object) -> list[int]:
    ended = (one["state"]["terminated"] for one in status["containerStatuses"])
    return [one["exitCode"] for one in ended]


Play = Callable[[Callable[[Pods], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Runs a test's story on an engine whose state lies below ``tmp_path``."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(story: Callable[[Pods], Awaitable[None]]) -> None:
        engine = LocalEngine(EngineOptions())
        engine.prepare()

        async def main() -> None:
            pods = Pods(engine)
            problems: list[str] = []
            engine.on_problem = problems.append
            async with engine, asyncio.timeout(40):
                await story(pods)
                assert not engine.lost.done(), engine.lost.result()
            assert not problems

        asyncio.run(main())

    return run


def test_init_containers_come_first_and_in_order(play: Play) -> None:
    async def story(pods: Pods) -> None:
        step = (
            "test \"$(cat /v/log 2>/dev/null | tr '\\n' ' ')\" = '{before}'"
            " && echo {name} >> /v/log"
        )
        mounts = [{"name": "v", "mountPath": "/v"}]
        await pods.create(
            shell(step.format(before="one two ", name="main"), volumeMounts=mounts),
            initContainers=[
                shell(step.format(before="", name="one"), "one", volumeMounts=mounts),
                shell(step.format(before="one ", name="two"), "two", volumeMounts=mounts),
            ],
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        assert (await pods.ended())["phase"] == "Succeeded"

    play(story)


SERVE = """
import socket
server = socket.create_server(("{address}", {port}))
print("up", flush=True)
while True:
    server.accept()[0].sendall(b"hello from {greeting}\\n")
"""
ASK = """
import socket, sys, time
while True:
    try:
        print(socket.create_connection(("{host}", {port})).makefile().read(), end="", flush=True)
        break
    except OSError:
        time.sleep(0.02)
time.sleep(600)  # a pod with a container that has ended is not ready
"""


def python(script: str, name: str = "main", **values: object) -> Object:
    command = ["python", "-c", script.format(**values)]
    return {"name": name, "image": "none", "command": command}


def test_containers_of_a_pod_share_its_loopback(play: Play) -> None:
    async def story(pods: Pods) -> None:
        await pods.create(
            python(SERVE, "server", address="127.0.0.1", port=7000, greeting="server"),
            python(ASK, "client", host="localhost", port=7000),
        )
        await pods.line("hello from server", container="client")

    play(story)


def service(name: str, **spec: Any) -> Object:
    spec = {"clusterIP": "None", "selector": {"app": name}, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def test_pods_on_the_same_port_reach_each_other_by_name(play: Play) -> None:
    async def story(pods: Pods) -> None:
        await pods.cluster.create(SERVICE, service("job"))
        for name, peer in (("a", "b"), ("b", "a")):
            await pods.create(
                python(SERVE, "server", address="0.0.0.0", port=2222, greeting=name),
                python(ASK, "client", host=f"{peer}.job", port=2222),
                name=name,
                labels={"app": "job"},
                hostname=name,
                subdomain="job",
            )
        await pods.line("hello from b", pod="a", container="client")
        await pods.line("hello from a", pod="b", container="client")

    play(story)


RESOLVE = """
import socket, time
def known():
    try:
        return sorted({{found[4][0] for found in socket.getaddrinfo("{host}", 1)}})
    except OSError:
        return []
last = None
while True:
    if known() != last:
        last = known()
        print(len(last), flush=True)
    time.sleep(0.02)
"""


def test_a_service_names_a_pod_once_it_is_ready(play: Play) -> None:
    async def story(pods: Pods) -> None:
        await pods.cluster.create(SERVICE, service("job"))
        await pods.cluster.create(CONFIG_MAP, {"metadata": {"name": "told"}, "data": {}})
        await pods.create(python(RESOLVE, host="job"), name="looking")
        await pods.line("0", pod="looking")
        wait = "import os, time\nwhile not os.path.exists('/told/go'): time.sleep(0.02)\n"
        await pods.create(
            {
                **python(wait + SERVE, address="0.0.0.0", port=80, greeting=""),
                "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
                "volumeMounts": [{"name": "told", "mountPath": "/told"}],
            },
            name="server",
            labels={"app": "job"},
            volumes=[{"name": "told", "configMap": {"name": "told"}}],
        )
        unready = await pods.until(lambda status: status["phase"] == "Running", "server")
        assert not unready["containerStatuses"][0]["ready"]
        await pods.cluster.patch(CONFIG_MAP, "default", "told", {"data": {"go": ""}})
        await pods.line("1", pod="looking")
        ready = (await pods.cluster.get(POD, "default", "server"))["status"]
        assert ready["containerStatuses"][0]["ready"]

    play(story)


def test_a_pod_that_fails_its_readiness_probe_has_no_name(play: Play) -> None:
    async def story(pods: Pods) -> None:
        await pods.cluster.create(SERVICE, service("job"))
        await pods.cluster.create(SERVICE, service("all", selector={"app": "job"},
                                                   publishNotReadyAddresses=True))  # fmt: skip
        unready = shell("sleep 600")
        unready["readinessProbe"] = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
        await pods.create(unready, name="server", labels={"app": "job"})
        await pods.until(lambda status: status["phase"] == "Running", "server")
        await pods.create(python(RESOLVE, host="all"), name="all")
        await pods.line("1", pod="all")
        await pods.create(python(RESOLVE, host="job"), name="ready")
        await pods.line("0", pod="ready")
        assert pods.said("ready") == ["0"]

    play(story)


@pytest.mark.parametrize(
    ("policy", "script", "phase", "runs"),
    [
        ("Never", "echo run; exit 3", "Failed", 1),
        ("OnFailure", "echo run; echo x >> /v/f; test $(wc -l < /v/f) -ge 2", "Succeeded", 2),
        ("OnFailure", "echo run", "Succeeded", 1),
    ],
)
def test_restart_policies(play: Play, policy: str, script: str, phase: str, runs: int) -> None:
    async def story(pods: Pods) -> None:
        await pods.create(
            shell(script, volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            restartPolicy=policy,
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        status = await pods.ended()
        assert status["phase"] == phase
        assert status["containerStatuses"][0]["restartCount"] == runs - 1
        await pods.engine.drain()
        assert pods.said() == ["run"] * runs

    play(story)


def test_deletion_lets_a_container_finish_within_its_grace_period(play: Play) -> None:
    async def story(pods: Pods) -> None:
        await pods.create(shell("trap 'echo bye; exit 0' TERM; echo up; sleep 600 & wait"))
        await pods.line("up")
        await pods.delete()
        assert pods.said() == ["up", "bye"]

    play(story)


@pytest.mark.parametrize(
    "script", ["echo up; sleep 600; true", "trap '' TERM; echo up; sleep 600; true"]
)
def test_who_ignores_the_signal_is_killed_with_all_its_processes(play: Play, script: str) -> None:
    """A first process without a handler ignores SIGTERM, as in Kubernetes."""

    async def story(pods: Pods) -> None:
        await pods.create(shell(f"sleep 600 & {script}"), terminationGracePeriodSeconds=1)
        await pods.line("up")
        await pods.delete()
        await pods.engine.drain()
        assert pods.said() == ["up"]

    play(story)


@pytest.mark.parametrize(
    ("command", "codes", "message"),
    [
        (["no-such-program"], (127, 128), "no-such-program"),
        (["/no/such/program"], (127, 128), "/no/such/program"),
        (["sh", "-c", "no-such-program"], (127,), ""),
        (["/etc/passwd"], (126, 127, 128), "/etc/passwd"),
    ],
)
def test_a_program_that_cannot_be_run(
    play: Play, command: list[str], codes: tuple[int, ...], message: str
) -> None:
    async def story(pods: Pods) -> None:
        await pods.create({"name": "main", "image": "none", "command": command})
        status = await pods.ended()
        assert status["phase"] == "Failed"
        (code,) = exit_codes(status)
        assert code in codes
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert message in ended.get("message", "")

    play(story)


def test_files_of_a_config_map_follow_its_changes(play: Play) -> None:
    async def story(pods: Pods) -> None:
        hosts = {"metadata": {"name": "hosts"}, "data": {"worker.host": "one"}}
        await pods.cluster.create(CONFIG_MAP, hosts)
        await pods.create(
            shell(
                "while sleep 0.02; do f=$(cat /etc/volcano/worker.host);"
                ' test "$f" = "$last" || echo $f; last=$f; done',
                volumeMounts=[{"name": "h", "mountPath": "/etc/volcano"}],
            ),
            volumes=[{"name": "h", "configMap": {"name": "hosts"}}],
        )
        await pods.line("one")
        await pods.cluster.patch(CONFIG_MAP, "default", "hosts", {"data": {"worker.host": "two"}})
        await pods.line("two")
        assert pods.said() == ["one", "two"]

    play(story)


def test_a_container_leaves_a_last_word(play: Play) -> None:
    async def story(pods: Pods) -> None:
        await pods.create(shell("echo out of disk > /dev/termination-log; exit 5"))
        ended = (await pods.ended())["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["message"]) == (5, "out of disk\n")

    play(story)


def test_a_deadline_ends_a_pod(play: Play) -> None:
    async def story(pods: Pods) -> None:
        await pods.create(
            shell("sleep 600"), activeDeadlineSeconds=1, terminationGracePeriodSeconds=1
        )
        status = await pods.ended()
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")

    play(story)


def test_a_failed_liveness_probe_restarts_the_container(play: Play) -> None:
    async def story(pods: Pods) -> None:
        deaf = python(ASK, host="localhost", port=1)
        probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 1}
        await pods.create(
            {**deaf, "livenessProbe": probe}, restartPolicy="Always",
            terminationGracePeriodSeconds=1,
        )  # fmt: skip
        status = await pods.until(
            lambda s: s.get("containerStatuses") and s["containerStatuses"][0]["restartCount"]
        )
        assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] in (137, 143)

    play(story)


def test_a_container_beyond_its_memory_limit_is_killed(play: Play) -> None:
    async def story(pods: Pods) -> None:
        hungry = {"name": "main", "image": "none", "resources": {"limits": {"memory": "64Mi"}}}
        hungry["command"] = ["python", "-c", "import time; x = b'x' * (256 << 20); time.sleep(600)"]
        await pods.create(hungry)
        ended = (await pods.ended())["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")

    play(story)
