"""``exec`` over WebSocket, with programs that run on this machine instead of in a container."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
import pytest
from served import PODS, Asking, pod, served

from vcjob.local.agent.inside import Inside
from vcjob.local.doors.executing import ExecDoor
from vcjob.local.node.client import Entry, NodeRefused
from vcjob.local.node.messages import EntryExited
from vcjob.local.node.terminals import become_terminal
from vcjob.local.store import Store

V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"


class _Machine:
    """A node whose containers are this machine; with ``refuses`` nothing can be entered."""

    refuses = False

    def __init__(self) -> None:
        self.processes: list[asyncio.subprocess.Process] = []
        self.entered = asyncio.Event()
        self._waiting: list[asyncio.Task[None]] = []

    async def enter(
        self,
        container: str,
        command: Sequence[str],
        stdin: int,
        stdout: int,
        stderr: int,
        *,
        environment: Mapping[str, str],
        directory: str,
        terminal: bool,
    ) -> Entry:
        if self.refuses:
            raise NodeRefused("container u/main/0 is not running")
        number = len(self.processes)
        control = os.dup(stdin)
        at_start = (lambda: become_terminal(control)) if terminal else None
        exited: asyncio.Future[EntryExited] = asyncio.get_running_loop().create_future()
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment,
                cwd=directory, start_new_session=True, preexec_fn=at_start, pass_fds=[control],
            )  # fmt: skip
        except FileNotFoundError:
            error = f"{command[0]}: No such file or directory"
            exited.set_result(EntryExited(number, 127, error))
            return Entry(number, exited)
        finally:
            os.close(control)

        async def wait() -> None:
            code = await process.wait()
            exited.set_result(EntryExited(number, code if code >= 0 else 128 - code))

        self.processes.append(process)
        self.entered.set()
        self._waiting.append(asyncio.create_task(wait()))
        return Entry(number, exited)

    async def signal_entry(self, entry: Entry, number: signal.Signals) -> None:
        os.killpg(self.processes[entry.number].pid, number)

    async def close(self) -> None:
        """Whatever still runs is ended and waited for: no test leaves a process behind."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await asyncio.gather(*self._waiting)


@contextlib.asynccontextmanager
async def _world(*, runs: bool = True) -> AsyncIterator[tuple[Asking, _Machine]]:
    machine, store = _Machine(), Store(lambda: 0.0)
    environment = {"PATH": os.environ["PATH"], "OF": "container"}
    inside = Inside(machine, "u/main/0", environment, "/tmp")  # type: ignore[arg-type]
    door = ExecDoor(store, lambda uid, container: inside if runs else None)
    try:
        async with served(store=store, doors={"exec": door}) as ask:
            await ask.made(PODS, pod("p"))
            yield ask, machine
    finally:
        await machine.close()


@contextlib.asynccontextmanager
async def _client(
    ask: Asking, *command: str, protocol: str = V5, **query: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    parameters = [*query.items(), *(("command", part) for part in command)]
    async with ask.session.ws_connect(
        f"{ask.url}{PODS}/p/exec", params=parameters, protocols=(protocol,)
    ) as websocket:
        yield websocket


async def _rest(websocket: aiohttp.ClientWebSocketResponse) -> tuple[bytes, bytes, Any]:
    """Output, errors and what came last, all to the end."""
    said = {1: b"", 2: b"", 3: b""}
    async for message in websocket:
        said[message.data[0]] += message.data[1:]
    status = said[3]
    return said[1], said[2], json.loads(status) if status[:1] == b"{" else status


def _run(
    *command: str, stdin: bytes | None = None, protocol: str = V5, **query: str
) -> tuple[bytes, bytes, Any]:
    async def run() -> tuple[bytes, bytes, Any]:
        options = {"stdout": "1", "stderr": "1", **({"stdin": "1"} if stdin is not None else {})}
        async with (
            _world() as (ask, _),
            _client(ask, *command, protocol=protocol, **{**options, **query}) as websocket,
        ):
            if stdin is not None:
                for at in range(0, len(stdin), 1 << 16):
                    await websocket.send_bytes(b"\0" + stdin[at : at + (1 << 16)])
                await websocket.send_bytes(b"\xff\0")
            return await _rest(websocket)

    return asyncio.run(asyncio.wait_for(run(), 30))


def test_output_errors_and_exit_code() -> None:
    out, err, status = _run("sh", "-c", "echo $OF $PWD; echo wrong >&2; exit 7")
    assert (out, err) == (b"container /tmp\n", b"wrong\n")
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


def test_input_ends_when_the_client_says_so_and_everything_comes_through() -> None:
    data = os.urandom(3 << 20)
    out, _, status = _run("cat", stdin=data)
    assert out == data
    assert status["status"] == "Success"


def test_output_that_is_not_asked_for_is_not_sent() -> None:
    out, err, _ = _run("sh", "-c", "echo out; echo err >&2", stderr="0")
    assert (out, err) == (b"out\n", b"")


def test_a_program_that_is_not_there_says_so() -> None:
    out, err, status = _run("no-such-program")
    assert (out, err) == (b"", b"no-such-program: No such file or directory\n")
    assert status["details"]["causes"][0]["message"] == "127"


def test_the_first_version_tells_failures_as_text() -> None:
    assert _run("true", protocol=V1)[2] == b""
    assert b"exit status 3" in _run("sh", "-c", "exit 3", protocol=V1)[2]
    assert _run("sh", "-c", "exit 3", protocol=V4)[2]["reason"] == "NonZeroExitCode"


def test_a_child_that_stays_does_not_hold_the_end_up() -> None:
    out, _, status = _run("sh", "-c", "echo $$; sleep 60 & exit 0")
    assert status["status"] == "Success"
    os.killpg(int(out), signal.SIGKILL)


def test_at_a_terminal_output_is_one_stream_and_the_size_is_the_clients() -> None:
    async def run() -> tuple[bytes, bytes, Any]:
        script = "read _; stty size; test -t 2 && echo $TERM >&2"
        query = {"stdin": "1", "stdout": "1", "tty": "1"}
        async with (
            _world() as (ask, _),
            _client(ask, "sh", "-c", script, **query) as websocket,
        ):
            await websocket.send_bytes(b'\x04{"Width":91,"Height":33}')
            await websocket.send_bytes(b"\x04nonsense")
            await websocket.send_bytes(b'\x04{"Width":-1,"Height":99999999}')
            await websocket.send_bytes(b"\0\n")
            return await _rest(websocket)

    out, err, status = asyncio.run(asyncio.wait_for(run(), 30))
    assert out.replace(b"\r", b"").split() == [b"33", b"91", b"xterm"]
    assert err == b""
    assert status["status"] == "Success"


@pytest.mark.parametrize("command", [("sleep", "600"), ("sh", "-c", "yes; sleep 600")])
def test_a_program_does_not_outlive_its_client(command: tuple[str, ...]) -> None:
    async def run() -> int:
        async with _world() as (ask, machine):
            async with _client(ask, *command, stdout="1") as websocket:
                await machine.entered.wait()
                websocket._response.connection.transport.abort()
            return await machine.processes[0].wait()

    assert asyncio.run(asyncio.wait_for(run(), 30)) == -signal.SIGKILL


def test_a_program_does_not_outlive_the_server() -> None:
    async def run() -> int:
        async with _world() as (ask, machine), _client(ask, "sleep", "600", stdout="1"):
            await machine.entered.wait()
            ask.server.end_lasting()
            return await machine.processes[0].wait()

    assert asyncio.run(asyncio.wait_for(run(), 30)) == -signal.SIGKILL


def test_a_slow_reader_makes_the_program_wait() -> None:
    async def run() -> int:
        async with _world() as (ask, machine), _client(ask, "yes", stdout="1") as websocket:
            await websocket.receive()
            before = -1
            while (read := _written_bytes(machine.processes[0].pid)) != before:
                before = read
                await asyncio.sleep(0.2)
            return read

    # What it wrote lies in buffers: of the pipe, the server, two sockets and the client.
    assert asyncio.run(asyncio.wait_for(run(), 30)) < 32 << 20


def _written_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/io") as counts:
        return next(int(line.split()[1]) for line in counts if line.startswith("wchar"))


@pytest.mark.parametrize(
    ("query", "headers", "said"),
    [
        ({"stdout": "1"}, {}, "at least one command"),
        ({"command": "true"}, {}, "at least 1 of stdin, stdout, stderr"),
        ({"command": "true", "stdout": "1"}, {}, "WebSocket"),
        ({"command": "true", "stdout": "1"}, {"Upgrade": "SPDY/3.1"}, "kubectl 1.31"),
        ({"command": "true", "stdout": "1"},
         {"Upgrade": "websocket", "Sec-WebSocket-Protocol": "chat"}, V5),
        ({"command": "true", "stdout": "1", "container": "x"}, {}, "container x is not valid"),
    ],
)  # fmt: skip
def test_what_is_refused(query: dict[str, str], headers: dict[str, str], said: str) -> None:
    async def run() -> tuple[int, str]:
        async with _world() as (ask, _):
            answer = await ask("POST", f"{PODS}/p/exec", headers=headers, **query)
            return answer.code, answer.body["message"]

    code, message = asyncio.run(run())
    assert code == 400
    assert said in message


@pytest.mark.parametrize("gone", ["status", "node"])
def test_a_container_that_does_not_run_is_not_entered(gone: str) -> None:
    async def run() -> str:
        async with _world(runs=gone == "node") as (ask, machine):
            machine.refuses = True
            if gone == "status":
                answer = await ask("GET", f"{PODS}/p/exec", command="true", stdout="1")
                return str(answer.body["message"])
            async with _client(ask, "true", stdout="1") as websocket:
                return str((await _rest(websocket))[2]["message"])

    assert "is not running" in asyncio.run(run())
