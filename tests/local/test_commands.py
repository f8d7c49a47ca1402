"""The commands on real pods of the engine of this machine."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ended, Manifest, environment, job, run, start, task

from vcjob.api.kinds import JOB, POD
from vcjob.cli.following import changes
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.kubeconfig import read_kubeconfig

pytestmark = pytest.mark.local

WAITS = ("sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")


class Machine:
    """The engine of one test's state directory, and commands that find it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def vcjob(self, *arguments: str | Path, code: int = 0) -> Ended:
        ended = run(self.directory, *arguments)
        assert ended.code == code, ended
        return ended

    def ask(self, question: Callable[[KubernetesCluster], Awaitable[Any]]) -> Any:
        home = Path(environment(self.directory)["XDG_STATE_HOME"]) / "vcjob" / "engine"

        async def asking() -> Any:
            async with KubernetesCluster.of(read_kubeconfig((home / "kubeconfig",))) as cluster:
                return await question(cluster)

        return asyncio.run(asking())

    def create(self, manifest: Manifest) -> None:
        metadata = {"namespace": "default", **manifest["metadata"]}
        self.ask(lambda cluster: cluster.create(JOB, {**manifest, "metadata": metadata}))

    def until_ready(self, name: str) -> None:
        async def wait(cluster: KubernetesCluster) -> None:
            async for _, pod in changes(cluster, POD, "default"):
                statuses = pod["status"].get("containerStatuses") or [{}]
                if pod["metadata"]["name"] == name and statuses[0].get("ready"):
                    return

        self.ask(wait)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    machine.vcjob("engine", "start", "--detach")
    try:
        yield machine
    finally:
        machine.vcjob("engine", "stop")


def test_a_job_is_looked_at_scaled_suspended_resumed_and_deleted(machine: Machine) -> None:
    machine.create(job("mnist", task("ps", WAITS), task("worker", WAITS, 2)))
    machine.vcjob("wait", "mnist", "--for=phase=Running", "--timeout=30s")
    assert machine.vcjob("ls").out.splitlines()[1].split()[:3] == ["mnist", "Running", "3"]
    pods = [line.split()[:3] for line in machine.vcjob("ls", "mnist").out.splitlines()[1:]]
    assert pods == [[pod, "1/1", "Running"] for pod in ("ps-0", "worker-0", "worker-1")]
    machine.vcjob("scale", "mnist", "worker=1")
    assert "worker   1          1" in machine.vcjob("describe", "mnist").out
    machine.vcjob("suspend", "mnist")
    assert "Aborted" in machine.vcjob("wait", "mnist", "--timeout=30s", code=6).err
    machine.vcjob("resume", "mnist")
    machine.vcjob("wait", "mnist", "--for=phase=Running", "--timeout=30s")
    assert "ResumeJob" in machine.vcjob("events", "mnist").out
    machine.vcjob("delete", "mnist")
    assert machine.vcjob("get", "pods").err.startswith("vcjob: there are no pods")


def test_waiting_ends_with_the_jobs_own_code(machine: Machine) -> None:
    machine.create(job("fails", task("worker", ("sh", "-c", "exit 3"))))
    ended = machine.vcjob("wait", "fails", "--timeout=30s", code=1)
    assert "job fails is Failed" in ended.err
    assert "exit code 3" in machine.vcjob("describe", "fails").out


def test_logs_are_followed_from_the_first_line_to_the_last(machine: Machine) -> None:
    says = ("sh", "-c", 'echo "begin $VC_TASK_INDEX"; sleep 0.5; echo end >&2')
    machine.create(job("mnist", task("worker", says, 2)))
    followed = machine.vcjob("logs", "-f", "mnist")
    assert followed.lines("worker-0") == ["begin 0", "end"]
    assert followed.lines("worker-1") == ["begin 1", "end"]
    assert machine.vcjob("logs", "mnist/worker-1").out == "begin 1\nend\n"
    assert machine.vcjob("logs", "mnist/worker-1", "--tail=1").out == "end\n"
    stamped = machine.vcjob("logs", "mnist/worker-0", "--timestamps", "--since=1h").out
    assert [line.split(" ", 1)[1] for line in stamped.splitlines()] == ["begin 0", "end"]


def test_programs_and_files_go_in_and_come_out(machine: Machine) -> None:
    machine.create(job("mnist", task("worker", WAITS, 2)))
    machine.vcjob("wait", "mnist", "--for=phase=Running", "--timeout=30s")
    said = machine.vcjob(
        "exec", "mnist/worker-1", "--", "sh", "-c", "hostname; echo oops >&2; exit 7", code=7
    )
    assert (said.out, said.err) == ("mnist-worker-1\n", "oops\n")
    (machine.directory / "in" / "deep").mkdir(parents=True)
    content = bytes(range(256)) * 4000
    (machine.directory / "in" / "deep" / "data").write_bytes(content)
    machine.vcjob("cp", "in", "mnist/worker-0:/tmp/there")
    size = machine.vcjob("exec", "mnist/worker-0", "--", "wc", "-c", "/tmp/there/deep/data").out
    assert size.split()[0] == str(len(content))
    machine.vcjob("cp", "mnist/worker-0:/tmp/there", "back")
    assert (machine.directory / "back" / "deep" / "data").read_bytes() == content
    missing = machine.vcjob("cp", "mnist/worker-0:/tmp/no", "back", code=1)
    assert "no" in missing.err
    absent = machine.vcjob("exec", "mnist/worker-0", "--", "no-such-program", code=127)
    assert "no-such-program" in absent.err


def test_a_port_of_a_pod_is_reached_from_here(machine: Machine) -> None:
    serve = (
        "python3", "-c",
        "import socketserver as s\n"
        "class H(s.StreamRequestHandler):\n"
        " def handle(self): self.wfile.write(self.rfile.readline().upper())\n"
        "s.TCPServer(('', 8080), H).serve_forever()",
    )  # fmt: skip
    ready = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}
    manifest = job("mnist", task("ps", serve))
    spec = manifest["spec"]["tasks"][0]["template"]["spec"]
    spec["containers"][0] |= ready
    spec["terminationGracePeriodSeconds"] = 0  # it heeds no SIGTERM
    machine.create(manifest)
    machine.until_ready("mnist-ps-0")
    forwarding = start(machine.directory, "port-forward", "mnist/ps-0", ":8080")
    assert forwarding.stdout
    port = int(forwarding.stdout.readline().split()[2].rpartition(b":")[2])
    for word in (b"one\n", b"two\n"):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(word)
            assert connection.makefile("rb").readline() == word.upper()
    forwarding.send_signal(signal.SIGINT)
    assert Ended(forwarding).code == 130
