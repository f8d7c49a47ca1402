"""A kubeconfig file that is not there, or names what is not there, in a pod and elsewhere."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

COMMANDS = ("operator", "webhook")
CONFIG = {
    "current-context": "lab",
    "contexts": [{"name": "lab", "context": {"cluster": "c"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
}
_PATIENCE_SECONDS = 60


@contextlib.contextmanager
def begun(command: str, file: Path, port: int, **environment: str) -> Iterator[subprocess.Popen]:  # type: ignore[type-arg]
    """The command, which is ended with the block."""
    options = ["--kubeconfig", str(file), "--health-address", f"127.0.0.1:{port}"]
    if command == "webhook":
        options += ["--address", "127.0.0.1:0"]
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("vcjob")), command, *options],
        env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def readyz(port: int, words: str) -> int:
    """The code of /readyz once its text has these words."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    text = ""
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionError, urllib.error.URLError):
            try:
                answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10)
                code = int(answer.status)
            except urllib.error.HTTPError as refused:
                answer, code = refused, refused.code
            with answer:
                text = answer.read().decode()
            if words in text:
                return code
        time.sleep(0.05)
    raise AssertionError(text)


@pytest.mark.parametrize("command", COMMANDS)
def test_in_a_pod_it_is_waited_for_and_told(command: str, tmp_path: Path, port: int) -> None:
    file = tmp_path / "config"
    with begun(command, file, port, KUBERNETES_SERVICE_HOST="127.0.0.1") as process:
        assert readyz(port, f"server: there is no kubeconfig file {file}") == 503
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10).close()
        file.write_text(yaml.safe_dump(CONFIG))
        assert readyz(port, "nothing answers at http://127.0.0.1:1") == 503
        assert process.poll() is None


@pytest.mark.parametrize("command", COMMANDS)
def test_told_to_end_meanwhile_it_ends_without_ado(command: str, tmp_path: Path, port: int) -> None:
    with begun(command, tmp_path / "no", port, KUBERNETES_SERVICE_HOST="127.0.0.1") as process:
        readyz(port, "there is no kubeconfig file")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=_PATIENCE_SECONDS)
        assert process.returncode == 0
        assert "Traceback" not in said


@pytest.mark.parametrize("command", COMMANDS)
def test_elsewhere_it_is_said_in_a_sentence(command: str, tmp_path: Path, port: int) -> None:
    with begun(command, tmp_path / "no", port, KUBERNETES_SERVICE_HOST="") as process:
        _, said = process.communicate(timeout=_PATIENCE_SECONDS)
        assert process.returncode == 2
        assert "there is no kubeconfig file" in said
