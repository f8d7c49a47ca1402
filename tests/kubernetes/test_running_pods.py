"""What goes on in pods of a real engine, as clients that users have see and steer it."""

import contextlib
import fcntl
import gc
import json
import os
import re
import socket
import struct
import subprocess
import termios
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from cli_runs import Ended, environment, job, run, task

pytestmark = pytest.mark.local

TALKS = (
    "echo one; echo two >&2; echo three; trap 'echo bye; exit' TERM; while :; do sleep 0.1; done"
)
SERVES = ("python3", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", "/tmp")
Kubectl = Callable[..., subprocess.CompletedProcess[str]]
Begin = Callable[..., contextlib.AbstractContextManager[subprocess.Popen[str]]]


class Engine:
    """The engine as a service, for all tests of this file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kubeconfig = Path(environment(directory)["XDG_STATE_HOME"]) / "vcjob/engine/kubeconfig"

    def vcjob(self, *arguments: str) -> Ended:
        return run(self.directory, *arguments)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    started = Engine(tmp_path_factory.mktemp("engine"))
    assert started.vcjob("engine", "start", "--detach").code == 0
    yield started
    assert started.vcjob("engine", "stop", "--now").code == 0


@pytest.fixture
def config(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the server without pods that ``kubectl`` has elsewhere."""
    monkeypatch.setenv("KUBECONFIG", str(engine.kubeconfig))
    return engine.kubeconfig


@pytest.fixture
def begin(config: Path, program: Callable[[str], Path]) -> Begin:
    """Begins a kubectl that goes on until the context ends."""

    @contextlib.contextmanager
    def begun(*arguments: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [program("kubectl"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    return begun


def _pod(name: str, *command: str, **more: object) -> dict[str, object]:
    container = {"name": "main", "image": "unused", "command": list(command)}
    spec = {"restartPolicy": "Never", "containers": [container], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def pod(kubectl: Kubectl) -> Iterator[Callable[..., str]]:
    """Makes a pod that runs, and takes it away."""
    made: list[str] = []

    def make(*command: str, **more: object) -> str:
        name = f"p{os.getpid()}-{len(made)}"
        kubectl("create", "-f", "-", given=json.dumps(_pod(name, *command, **more)))
        made.append(name)
        kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=30s")
        return name

    yield make
    if made:
        kubectl("delete", "pod", "--grace-period=0", "--force", "--ignore-not-found", *made)


def test_kubectl_logs(kubectl: Kubectl, begin: Begin, pod: Callable[..., str]) -> None:
    name = pod("sh", "-c", TALKS)
    with begin("logs", "-f", name) as following:
        assert following.stdout is not None
        assert [following.stdout.readline() for _ in range(3)] == ["one\n", "two\n", "three\n"]
        assert kubectl("logs", name, "--tail=1").stdout == "three\n"
        assert kubectl("logs", name, "--since=1h").stdout == "one\ntwo\nthree\n"
        stamped = kubectl("logs", name, "--timestamps", "--tail=1").stdout
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z three\n", stamped)
        kubectl("delete", "pod", name)
        assert following.stdout.read() == "bye\n"  # it ends with the container
        assert following.wait() == 0
    refused = kubectl("logs", name, code=1)
    assert f'pods "{name}" not found' in refused.stderr


def test_a_pod_of_the_same_name_has_a_log_of_its_own(
    kubectl: Kubectl, begin: Begin, pod: Callable[..., str]
) -> None:
    name = pod("sh", "-c", "echo first; sleep 600")
    kubectl("delete", "pod", name, "--grace-period=0", "--force")
    again = _pod(name, "sh", "-c", "echo second; sleep 600")
    kubectl("create", "-f", "-", given=json.dumps(again))
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=30s")
    with begin("logs", "-f", name) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "second\n"


def test_kubectl_exec(kubectl: Kubectl, pod: Callable[..., str]) -> None:
    name = pod("sleep", "600")
    done = kubectl("exec", name, "--", "sh", "-c", "echo out; echo wrong >&2; exit 7", code=7)
    assert done.stdout == "out\n"
    assert done.stderr == "wrong\ncommand terminated with exit code 7\n"
    text = "".join(f"{number}\n" for number in range(100_000))
    assert kubectl("exec", "-i", name, "--", "cat", given=text).stdout == text
    hostname = kubectl("exec", name, "--", "hostname").stdout
    assert hostname == f"{name}\n"
    refused = kubectl("exec", name, "-c", "other", "--", "true", code=1)
    assert "container other is not valid" in refused.stderr


def test_kubectl_exec_at_a_terminal(
    config: Path, program: Callable[[str], Path], pod: Callable[..., str]
) -> None:
    name = pod("sleep", "600")
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    command = "read line; stty size; echo got $line; exit 5"
    process = subprocess.Popen(
        [program("kubectl"), "exec", "-it", name, "--", "sh", "-c", command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, b"it\n")
    said = b""
    with contextlib.suppress(OSError):  # nobody has the terminal open any more
        while data := os.read(ours, 4096):
            said += data
    os.close(ours)
    assert process.wait() == 5
    assert b"33 101\r\ngot it\r\n" in said


def test_kubectl_cp(kubectl: Kubectl, pod: Callable[..., str], tmp_path: Path) -> None:
    name = pod("sleep", "600")
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(os.urandom(1 << 20))
    kubectl("cp", str(sent), f"{name}:/tmp/there")
    kubectl("cp", f"{name}:/tmp/there", str(back))
    assert back.read_bytes() == sent.read_bytes()


def test_kubectl_attach(kubectl: Kubectl, begin: Begin, pod: Callable[..., str]) -> None:
    name = pod("sh", "-c", "while ! [ -e /tmp/go ]; do sleep 0.05; done; echo now; sleep 600")
    with begin("attach", name) as attached:
        assert attached.stderr is not None
        assert attached.stdout is not None
        while "press" not in (line := attached.stderr.readline()):
            assert line, "kubectl has ended"
        kubectl("exec", name, "--", "touch", "/tmp/go")
        assert attached.stdout.readline() == "now\n"


def test_kubectl_attach_with_input(
    kubectl: Kubectl, config: Path, program: Callable[[str], Path]
) -> None:
    made = _pod("typed", "sh", "-c", "read line; echo got $line; cat; echo end")
    made["spec"]["containers"][0] |= {"stdin": True, "stdinOnce": True}  # type: ignore[index]
    kubectl("create", "-f", "-", given=json.dumps(made))
    kubectl("wait", "--for=condition=Ready", "pod/typed", "--timeout=30s")
    assert kubectl("attach", "-i", "typed", given="one\ntwo\n").stdout == "got one\ntwo\nend\n"
    kubectl("delete", "pod", "typed")


def test_kubectl_port_forward(kubectl: Kubectl, begin: Begin, pod: Callable[..., str]) -> None:
    name = pod(*SERVES)
    kubectl("exec", name, "--", "sh", "-c", "until head -c 1000000 /dev/zero >/tmp/x; do :; done")
    with begin("port-forward", name, ":8000") as forwarding:
        assert forwarding.stdout is not None
        port = re.search(r"127\.0\.0\.1:(\d+) ->", forwarding.stdout.readline())
        assert port is not None
        for _ in range(5):
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/x") as answer:
                assert answer.read() == bytes(1_000_000)


def test_our_own_commands(engine: Engine, kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl(
        "create", "-f", "-", given=yaml.safe_dump(job("ours", task("only", ("sh", "-c", TALKS))))
    )
    kubectl("wait", "--for=jsonpath={.status.state.phase}=Running", "vcjob/ours")
    assert engine.vcjob("logs", "ours", "--tail", "1").out == "three\n"
    done = engine.vcjob("exec", "ours/only-0", "--", "sh", "-c", "hostname; exit 5")
    assert (done.code, done.out) == (5, "ours-only-0\n")
    (tmp_path / "sent").write_text("content")
    assert engine.vcjob("cp", str(tmp_path / "sent"), "ours/only-0:/tmp/there").code == 0
    assert engine.vcjob("exec", "ours/only-0", "--", "cat", "/tmp/there").out == "content"
    kubectl("delete", "vcjob", "ours")


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore")  # it leaves sockets open
def test_the_official_python_client(config: Path, pod: Callable[..., str]) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    from kubernetes.stream import portforward, stream

    name = pod(*SERVES)
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(config)))
    client = stream(
        api.connect_get_namespaced_pod_exec, name, "default",
        command=["sh", "-c", "read line; echo got $line; exit 3"],
        stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False,
    )  # fmt: skip
    client.write_stdin("this\n")
    client.run_forever(timeout=30)
    assert (client.read_stdout(), client.returncode) == ("got this\n", 3)

    forwarded = portforward(
        api.connect_get_namespaced_pod_portforward, name, "default", ports="8000"
    )
    opened: socket.socket = forwarded.socket(8000)
    opened.setblocking(True)
    opened.sendall(b"GET /none HTTP/1.0\r\n\r\n")
    assert opened.recv(100).startswith(b"HTTP/1.0 404")
    opened.close()

    options = kubernetes.client.V1Eviction(metadata={"name": name})
    api.create_namespaced_pod_eviction(name, "default", options)
    for websocket in (client.sock, forwarded.websocket):
        websocket.shutdown()
    del client, forwarded, api
    gc.collect()


def test_an_eviction_is_what_policies_see(engine: Engine, kubectl: Kubectl) -> None:
    evicted = [{"event": "PodEvicted", "action": "AbortJob"}]
    wanted = job("evicted", task("only", ("sh", "-c", TALKS)), policies=evicted)
    kubectl("create", "-f", "-", given=yaml.safe_dump(wanted))
    kubectl("wait", "--for=jsonpath={.status.state.phase}=Running", "vcjob/evicted")
    body = {"apiVersion": "policy/v1", "kind": "Eviction"}
    body["metadata"] = {"name": "evicted-only-0"}  # type: ignore[assignment]
    path = "/api/v1/namespaces/default/pods/evicted-only-0/eviction"
    kubectl("create", "--raw", path, "-f", "-", given=json.dumps(body))
    kubectl(
        "wait", "--for=jsonpath={.status.state.phase}=Aborted", "vcjob/evicted", "--timeout=50s"
    )
    kubectl("delete", "vcjob", "evicted")
