"""Containers with a terminal (``tty: true``), as clients see them that attach."""

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import environment, run

from vcjob.api.kinds import POD
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig
from vcjob.kubernetes.remote import RemoteOptions, run_remotely

pytestmark = [
    pytest.mark.local,
    # Clients do not wait for the goodbye of a WebSocket's TLS: collected, and no leak.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="the map may hold one number")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where an engine keeps its state, which serves."""
    assert run(tmp_path, "engine", "start", "--detach").code == 0
    yield tmp_path
    gc.collect()
    assert run(tmp_path, "engine", "stop", "--now").code == 0


class Session:
    """A client at the terminal of a container: it types when it has seen what it waits for."""

    def __init__(self, script: list[tuple[str, str]]) -> None:
        self.said = ""
        self._script = script
        self._heard = asyncio.Event()

    async def heard(self, _: int, content: bytes) -> None:
        self.said += content.decode()
        self._heard.set()

    async def typed(self) -> AsyncIterator[bytes]:
        seen = 0
        for awaited, text in self._script:
            while (at := self.said.find(awaited, seen)) < 0:
                self._heard.clear()
                await self._heard.wait()
            seen = at + len(awaited)
            yield text.encode()
        await asyncio.Event().wait()


async def _sizes() -> AsyncIterator[tuple[int, int]]:
    yield 91, 33


async def _in_phase(cluster: KubernetesCluster, version: str, phase: str) -> dict[str, Any]:
    """The status of the pod that is the first to be in a phase."""
    async with contextlib.aclosing(cluster.watch(POD, version, "default")) as events:  # type: ignore[type-var]
        async for event in events:
            status: dict[str, Any] = event.object.get("status") or {}
            if status.get("phase") == phase:
                return status
    raise AssertionError("the watch ended")


def _attached(
    directory: Path, spec: dict[str, Any], script: list[tuple[str, str]], *command: str
) -> tuple[str, int, bytes]:
    """What such a pod says to a client, the exit code of attach or exec, and the pod's log."""

    async def main() -> tuple[str, int, bytes]:
        home = Path(environment(directory)["XDG_STATE_HOME"], "vcjob", "engine")
        async with KubernetesCluster.of(read_kubeconfig((home / "kubeconfig",))) as cluster:
            metadata = {"name": "p", "namespace": "default"}
            made = await cluster.create(POD, {"metadata": metadata, "spec": spec})
            version = made["metadata"]["resourceVersion"]
            await _in_phase(cluster, version, "Running")
            session = Session(script)
            code = await run_remotely(
                cluster.connection, "default", "p", RemoteOptions("main", command, True),
                session.heard, stdin=session.typed(), sizes=_sizes(),
            )  # fmt: skip
            return session.said, code, (home / "logs/default_p/main/0.log").read_bytes()

    return asyncio.run(asyncio.wait_for(main(), 50))


def _pod(*command: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "command": command, "stdin": True, "tty": True}
    return {"restartPolicy": "Never", "containers": [{**container, **more}]}


@pytest.mark.parametrize(
    "context", [{}, pytest.param({"runAsUser": 1000, "runAsGroup": 1001}, marks=ROOT_ONLY)]
)
def test_a_program_has_a_terminal_with_a_name_that_it_can_open(
    directory: Path, context: dict[str, int]
) -> None:
    script = "read line; echo got $line; tty; stty size; echo $TERM; echo opened >$(tty); exit 3"
    spec = _pod("sh", "-c", script, securityContext=context)
    said, code, log = _attached(directory, spec, [("", "hello\r")])
    assert code == 0
    expected = "hello\r\ngot hello\r\n/dev/pts/0\r\n33 91\r\nxterm\r\nopened\r\n"
    assert (said, log.decode()) == (expected, expected)


def test_control_c_reaches_the_program_in_front_and_nothing_else(directory: Path) -> None:
    script = "trap 'echo heard' INT; cat; echo $?; exec cat"
    # A line that comes back shows that cat is there: dash loses an interrupt while it forks.
    typed = [("", "go\r"), ("go\r\ngo", "\x03"), ("130", "bye\r"), ("bye\r\nbye", "\x04")]
    said, code, _ = _attached(directory, _pod("sh", "-c", script), typed)
    assert code == 0
    lines = said.replace("^C", "").split()
    assert [line for line in lines if line != "heard"] == ["go", "go", "130", "bye", "bye"]
    assert "heard" in lines


def test_programs_that_enter_have_terminals_of_their_own_beside_it(directory: Path) -> None:
    spec = _pod("sh", "-c", "echo up; sleep 600", stdin=False)
    said, code, _ = _attached(directory, spec, [("", "x\r")], "sh", "-c", "read x; tty; exit 7")
    assert (said, code) == ("x\r\n/dev/pts/1\r\n", 7)


def test_a_program_that_is_not_there_is_told_in_the_log(directory: Path) -> None:
    spec = _pod("/usr/bin/no-such-program")

    async def main() -> tuple[int, bytes]:
        home = Path(environment(directory)["XDG_STATE_HOME"], "vcjob", "engine")
        async with KubernetesCluster.of(read_kubeconfig((home / "kubeconfig",))) as cluster:
            metadata = {"name": "p", "namespace": "default"}
            made = await cluster.create(POD, {"metadata": metadata, "spec": spec})
            status = await _in_phase(cluster, made["metadata"]["resourceVersion"], "Failed")
            code = status["containerStatuses"][0]["state"]["terminated"]["exitCode"]
            return code, (home / "logs/default_p/main/0.log").read_bytes()

    code, log = asyncio.run(asyncio.wait_for(main(), 50))
    assert (code, log) == (127, b"/usr/bin/no-such-program: No such file or directory\r\n")
