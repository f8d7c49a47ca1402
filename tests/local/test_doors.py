"""The ways into pods of an engine that serves, by our own commands."""

import asyncio
import contextlib
import os
import random
import re
import select
import signal
import subprocess
import sys
import urllib.request
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_runs import Ended, environment, job, run, start, task, write
from cutting_proxy import Cuts, cutting_proxy

pytestmark = pytest.mark.local

TALKS = "echo one; echo two >&2; trap 'echo bye; exit' TERM; while :; do sleep 0.1; done"
SERVES = "exec python3 -m http.server 8000 --bind 127.0.0.1 --directory /tmp"
Vcjob = Callable[..., Ended]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where an engine keeps its state, which runs a Job of a pod that talks and one that serves."""
    place = tmp_path_factory.mktemp("engine")
    tasks = [task(name, ("sh", "-c", does)) for name, does in (("a", TALKS), ("b", SERVES))]
    manifest = write(place, job("j", *tasks))
    started = run(place, "run", "--detach", manifest)
    try:
        assert started.code == 0, started
        assert run(place, "wait", "j", "--for", "phase=Running").code == 0
        yield place
    finally:
        assert run(place, "engine", "stop", "--now").code == 0


@pytest.fixture
def vcjob(directory: Path) -> Vcjob:
    return lambda *arguments: run(directory, *arguments)


@contextlib.contextmanager
def _begun(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = start(directory, *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_logs(vcjob: Vcjob) -> None:
    assert vcjob("logs", "j/a-0").out == "one\ntwo\n"
    assert vcjob("logs", "j/a-0", "--tail", "1").out == "two\n"
    stamped = vcjob("logs", "j/a-0", "--timestamps", "--since", "1h").out
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (one|two)\n){2}", stamped)
    earlier = vcjob("logs", "j/a-0", "--previous")
    assert (earlier.code, earlier.out) == (1, "")
    assert 'previous terminated container "main" in pod "j-a-0" not found' in earlier.err


def test_exec(vcjob: Vcjob) -> None:
    done = vcjob("exec", "j/a-0", "--", "sh", "-c", "hostname; echo wrong >&2; exit 5")
    assert (done.code, done.out, done.err) == (5, "j-a-0\n", "wrong\n")
    missing = vcjob("exec", "j/a-0", "--", "no-such-program")
    assert missing.code == 127
    assert "no-such-program: No such file or directory" in missing.err


def test_cp_to_a_pod(vcjob: Vcjob, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(1 << 20))
    assert vcjob("cp", sent, "j/b-0:/tmp/there").code == 0
    assert vcjob("exec", "j/b-0", "--", "cat", "/tmp/there").raw == sent.read_bytes()


def test_cp_from_a_pod(vcjob: Vcjob, tmp_path: Path) -> None:
    script = "head -c 1000000 /dev/urandom >/tmp/made; cat /tmp/made"
    made = vcjob("exec", "j/b-0", "--", "sh", "-c", script).raw
    assert vcjob("cp", "j/b-0:/tmp/made", tmp_path / "back").code == 0
    assert (tmp_path / "back").read_bytes() == made


def test_a_program_ends_with_its_client(directory: Path, vcjob: Vcjob) -> None:
    script = "echo $$; sleep 600"
    with _begun(directory, "exec", "j/a-0", "--", "sh", "-c", script) as executing:
        assert executing.stdout is not None
        number = executing.stdout.readline().decode().strip()
        assert vcjob("exec", "j/a-0", "--", "test", "-d", f"/proc/{number}").code == 0
        executing.send_signal(signal.SIGKILL)
        executing.wait()
    while vcjob("exec", "j/a-0", "--", "test", "-d", f"/proc/{number}").code == 0:
        pass  # bounded by the test's own time


def test_port_forward(directory: Path, vcjob: Vcjob) -> None:
    with _begun(directory, "port-forward", "j/b-0", "0:8000") as forwarding:
        said = _line(forwarding)
        port = re.search(r"127\.0\.0\.1:(\d+)", said)
        assert port is not None, said
        content = "x" * 1_000_000
        assert vcjob("exec", "j/b-0", "--", "sh", "-c", _writes("/tmp/x", len(content))).code == 0
        for _ in range(5):
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/x") as answer:
                assert answer.read().decode() == content


def _writes(path: str, size: int) -> str:
    return f"head -c {size} /dev/zero | tr '\\0' x >{path}"


def _line(process: subprocess.Popen[bytes]) -> str:
    """The first line that it prints, to whichever stream."""
    assert process.stdout is not None
    assert process.stderr is not None
    ready, _, _ = select.select([process.stdout, process.stderr], [], [])
    line: bytes = ready[0].readline()
    return line.decode()


def test_followed_logs_end_with_the_container_and_stay(directory: Path, vcjob: Vcjob) -> None:
    with _begun(directory, "logs", "-f", "j/a-0") as following:
        assert following.stdout is not None
        assert [following.stdout.readline() for _ in range(2)] == [b"one\n", b"two\n"]
        assert vcjob("suspend", "j").code == 0
        assert following.stdout.read() == b"bye\n"


class FewCuts(Cuts):
    """A few, each after more than it takes to ask for a log."""

    def draw(self) -> int:
        self.off = self.made > 4
        return 20_000 + super().draw()


def test_followed_logs_lose_and_double_nothing_when_connections_break(
    tmp_path: Path,
) -> None:
    """Through a proxy that cuts connections at random places."""
    script = "for number in range(5000): print(number, 'x' * 100)"
    manifest = write(tmp_path, job("j", task("a", ("python3", "-c", script))))
    try:
        assert run(tmp_path, "run", "--detach", manifest).code == 0
        kubeconfig = Path(environment(tmp_path)["XDG_STATE_HOME"], "vcjob/engine/kubeconfig")
        written = kubeconfig.read_text()
        port = int(re.findall(r"127\.0\.0\.1:(\d+)", written)[0])
        cuts = FewCuts(random.Random(1), 100_000)

        async def follow() -> tuple[int, bytes, bytes]:
            async with cutting_proxy(port, cuts) as cutting:
                await asyncio.to_thread(
                    kubeconfig.write_text, written.replace(f":{port}", f":{cutting}")
                )
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "vcjob", "logs", "-f", "j/a-0",
                    env=environment(tmp_path), stdout=PIPE, stderr=PIPE,
                )  # fmt: skip
                output, errors = await process.communicate()
                assert process.returncode is not None
                return process.returncode, output, errors

        code, output, errors = asyncio.run(follow())
        assert (code, errors) == (0, b"")
        assert output.decode() == "".join(f"{number} {'x' * 100}\n" for number in range(5000))
        assert cuts.made > 3
    finally:
        assert run(tmp_path, "engine", "stop", "--now").code == 0
